// Words outside brackets in the header of a line.
#include <algorithm>
#include <cctype>
#include <utility>

#include "base/ascii.h"
#include "logs/line/chars.h"
#include "logs/line/header_reader.h"
#include "logs/line/tokens.h"

namespace rose::logs {

bool HeaderReader::level_follows(std::size_t from) const {
  for (int words = 0; words < 2; ++words) {
    while (from < line_.size() &&
           (blank_char(line_[from]) || line_[from] == '[' || line_[from] == '<' || line_[from] == '-'))
      ++from;
    const std::size_t end = std::min(line_.find_first_of(" \t]>:", from), line_.size());
    if (end == from) return false;
    const std::string_view part = line_.substr(from, end - from);
    if (part.size() > 1 && level_of(part) != Level::none &&
        (std::isupper(static_cast<unsigned char>(part[0])) != 0 || line_[end < line_.size() ? end : from] == ']'))
      return true;
    if (!plain_name(part)) return false;
    from = end;
  }
  return false;
}

bool HeaderReader::word() {
  const std::size_t end = std::min(line_.find_first_of(" \t", at_), line_.size());
  std::string_view part = line_.substr(at_, end - at_);
  const bool last = end >= line_.size();
  if (pipes_) return pipe_word();
  const bool colon = part.size() > 1 && part.back() == ':';
  // Some programs align the level to the right and write a rule of dashes after it: " info --- message", "error---
  // message".
  constexpr std::string_view kRule = "---";
  const bool rule = !parts_.time && at_ <= 1 && part.size() > kRule.size() && part.ends_with(kRule);
  const bool ruled = rule || (!parts_.time && at_ <= 1 && line_.substr(end, 5) == " --- ");
  const std::string_view name = part.substr(0, part.size() - (colon ? 1 : rule ? kRule.size() : 0));
  // The same column may contain a word of the program's own: " http --- message".
  const bool in_column = ruled && (level_of(name) != Level::none || (at_ == 1 && plain_name(name)));
  if (in_column && parts_.level == Level::none && name.size() > 1) {
    parts_.level = level_of(name);
    at_ = rule ? end : end + 4;
    strong_level_ = over_ = true;
    describe("level ---");
    return true;
  }
  const bool had_just_timed = std::exchange(just_timed_, false);

  if (parts_.level == Level::none && level_word(name, colon, had_just_timed, end)) {
    at_ = end;
    describe(colon ? "level:" : "level");
    over_ = colon && parts_.time.has_value();
    return true;
  }
  if (!parts_.time) return before_time(part, end);
  if (last) return false;
  // "java.net.UnknownHostException: db2" looks like a logger and its message, but no logger has such a name.
  if (colon && exception_word(name)) return false;
  if (is_number(name) || hex_pointer(name)) {
    // The word is a thread's number if the header continues after it: "0 [System]", "12345 ---", Ceph's "7f1b2c3d4e5f
    // 0 message".
    const bool ceph = had_just_timed && hex_pointer(name);
    if (!ceph && !level_follows(end) && line_.substr(end, 5) != " --- " && !ceph_) return false;
    if (ceph_ && part.size() > 3) return false;
    ceph_ = ceph;
    at_ = end;
    describe("number");
    return true;
  }
  if (const std::size_t mark = name.find('#'); colon && mark != std::string_view::npos &&
                                               is_number(name.substr(0, mark)) &&
                                               is_number(name.substr(mark + 1))) {  // nginx: "739#739:"
    at_ = end;
    describe("number:");
    over_ = true;
    return true;
  }
  if (source_place(name)) {
    if (parts_.logger.empty()) parts_.logger = name.substr(0, name.rfind(':'));
    at_ = end;
    describe("place");
    over_ = colon || (parts_.level != Level::none && line_.substr(end, 3) != " - ");
    return true;
  }
  if (parts_.level == Level::none) {
    // The word is a name if a level follows: "user@db LOG:", "o.a.z.Server INFO - ".
    if (!plain_name(name) || !level_follows(end)) {
      if (!had_just_timed || !name_before_dash(part, end)) return false;
    }
    assign_name(name);
    at_ = end;
    describe("name");
    return true;
  }
  if (dotted_name(name) && parts_.logger.empty() &&
      (colon || line_.substr(end, 3) == " - " || line_.substr(end, 3) == " : " || tab_separated(end) ||
       next_is_colon(end) || line_.substr(end, 2) == " [")) {
    parts_.logger = name;
    at_ = end;
    describe(colon ? "logger:" : "logger");
    over_ = colon;
    return true;
  }
  // RocketMQ and Python: "INFO main - message"; Python's default: "INFO MainThread store.journal: message".
  if (plain_name(name) && !colon && (line_.substr(end, 3) == " - " || dotted_and_colon_follows(end))) {
    assign_name(name);
    at_ = end;
    describe("thread");
    return true;
  }
  if (tab_separated(end) && plain_name(name) && parts_.logger.empty()) {  // zap's console encoder
    parts_.logger = source_place(name) ? name.substr(0, name.rfind(':')) : name;
    at_ = end;
    describe("logger");
    return true;
  }
  return false;
}

void HeaderReader::assign_name(std::string_view name) {
  if (dotted_name(name) && parts_.logger.empty()) {
    parts_.logger = name;
  } else if (parts_.thread.empty()) {
    parts_.thread = name;
  } else if (parts_.logger.empty()) {
    parts_.logger = name;
  }
}

bool HeaderReader::tab_separated(std::size_t end) const {
  return end < line_.size() && line_[end] == '\t' && at_ > 0 && line_[at_ - 1] == '\t';
}

bool HeaderReader::next_is_colon(std::size_t end) const {
  while (end < line_.size() && line_[end] == ' ') ++end;
  return line_.substr(end, 2) == ": ";
}

bool HeaderReader::dotted_and_colon_follows(std::size_t end) const {
  while (end < line_.size() && line_[end] == ' ') ++end;
  const std::size_t stop = std::min(line_.find(' ', end), line_.size());
  return stop > end + 1 && line_[stop - 1] == ':' && dotted_name(line_.substr(end, stop - end - 1));
}

bool HeaderReader::name_before_dash(std::string_view name, std::size_t end) const {
  return plain_name(name) && line_.substr(end, 3) == " - ";
}

bool HeaderReader::level_word(std::string_view name, bool colon, bool just_timed, std::size_t end) {
  const Level level = level_of(name);
  if (level == Level::none) {
    const bool nest = name == "LOG" && just_timed && line_.substr(end, 2) == " [";  // NestJS
    if (nest) parts_.level = Level::info;
    return nest || postgres_word(name, colon);
  }
  const bool upper = name[0] >= 'A' && name[0] <= 'Z';
  if (name.size() == 1) {
    // A single letter is a level only if the header continues after it, as in MongoDB ("I  NETWORK  [conn1]"),
    // logcat, Ruby ("I, ["), and old versions of etcd ("I | raft: message").
    if (!parts_.time || !just_timed || end >= line_.size() || line_.substr(end, 2).find_first_of("\t ") != 0)
      return false;
    if (line_.substr(end, 2) != "  " && line_.substr(end, 3) != " | " && !level_like_mongo(end)) return false;
  }
  // "error opening x" is only a message, whereas "ERROR opening x" and "error: opening x" begin with a level.
  if (!upper && !colon) return false;
  // Older layouts of log4j align the level to the right: " INFO 12:00:00,123 message".
  const bool aligned = at_ == 1 && upper && !colon && read_time(line_.substr(std::min(end + 1, line_.size())));
  if (!parts_.time && at_ != 0 && !aligned) return false;
  if (!parts_.time && !colon && !(all_upper(name) && name.size() > 1)) return false;
  parts_.level = level;
  strong_level_ = strong_level_ || !parts_.time;
  return true;
}

bool HeaderReader::all_upper(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool HeaderReader::level_like_mongo(std::size_t end) const {
  const std::size_t stop = std::min(line_.find(' ', end + 1), line_.size());
  return stop > end + 3 && all_upper(line_.substr(end + 1, stop - end - 1));
}

bool HeaderReader::postgres_word(std::string_view name, bool colon) {
  if (!colon || !parts_.time) return false;
  if (name == "LOG" || name == "STATEMENT" || name == "DETAIL" || name == "HINT" || name == "CONTEXT" ||
      name == "QUERY" || name == "LOCATION") {
    parts_.level = Level::info;
    return true;
  }
  return false;
}

bool HeaderReader::before_time(std::string_view part, std::size_t end) {
  if (at_ > 30) return false;
  const std::size_t colon = part.find(':');
  if (at_ == 0 && part.size() - colon == 2 && colon != std::string_view::npos && is_number(part.substr(0, colon)) &&
      is_alpha(part.back())) {
    redis_ = true;
    at_ = end;
    describe("number:role");
    return true;
  }
  if (part.size() == 2 && part[1] == ',' && at_ == 0 && level_of(part.substr(0, 1)) != Level::none) {  // Ruby
    at_ = end;
    return true;
  }
  if (program_before_time(part, end)) return true;
  if (parts_.level == Level::none && !strong_level_) return false;
  // A name after a level is part of the header only if a timestamp follows the name.
  std::size_t from = end;
  while (from < line_.size() && blank_char(line_[from])) ++from;
  if (from >= line_.size() || !plain_name(part) || !read_time(line_.substr(from))) return false;
  assign_name(part);
  at_ = end;
  describe("name");
  return true;
}

// "Kvd 2026-01-02 03:04:05.678 INFO: message": java.util.logging with the name of the program; "[Nest] 18  -
// 01/02/2026, 3:04:05 AM     LOG [Store] message": NestJS, with the number of the process.
bool HeaderReader::program_before_time(std::string_view part, std::size_t end) {
  std::size_t from = end;
  while (from < line_.size() && blank_char(line_[from])) ++from;
  const bool number = is_number(part) && !parts_.thread.empty() && line_.substr(from, 2) == "- ";
  if (!number && (at_ != 0 || !plain_name(part) || is_number(part))) return false;
  if (number) from += 2;
  const auto time = read_time(line_.substr(std::min(from, line_.size())));
  if (!time || time->kind != TimeKind::date_time) return false;
  if (!number && !level_follows(from + time->length)) return false;
  if (!number) assign_name(part);
  at_ = from;
  describe(number ? "number -" : "name");
  return true;
}

bool HeaderReader::pipe_word() {
  const std::size_t end = line_.find(" | ", at_);
  if (end == std::string_view::npos) return false;
  const std::string_view field = trimmed(line_.substr(at_, end - at_));
  if (parts_.level != Level::none || level_of(field) == Level::none) return false;
  parts_.level = level_of(field);
  at_ = end + 3;
  describe("level |");
  const std::size_t last = line_.rfind(" | ");
  if (last > end && !plain_name(trimmed(line_.substr(last + 3)))) {
    for (std::size_t bar = line_.find(" | ", at_); bar != std::string_view::npos; bar = line_.find(" | ", at_)) {
      const std::string_view name = trimmed(line_.substr(at_, bar - at_));
      if (!plain_name(name)) break;
      if (!is_number(name)) parts_.logger = name;
      at_ = bar + 3;
      describe("name |");
    }
  } else if (last > end) {
    const std::size_t middle = line_.rfind(" | ", last - 1);
    parts_.thread = trimmed(line_.substr(last + 3));
    if (middle != std::string_view::npos && middle > end)
      parts_.logger = trimmed(line_.substr(middle + 3, last - middle - 3));
    line_ = line_.substr(0, middle != std::string_view::npos && middle > end ? middle : last);
  }
  over_ = true;
  return true;
}

}  // namespace rose::logs
