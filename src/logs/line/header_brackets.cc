// Brackets in the header of a line.
#include <algorithm>

#include "base/ascii.h"
#include "logs/line/chars.h"
#include "logs/line/header_reader.h"
#include "logs/line/tokens.h"

namespace rose::logs {

bool HeaderReader::bracket(char open, char close) {
  const std::size_t end = closing(line_, at_, open, close);
  if (end == std::string_view::npos) return false;
  const std::string_view inside = trimmed(line_.substr(at_ + 1, end - at_ - 1));
  const std::string_view thread = parts_.thread;
  if (!content(inside, open, close)) return false;
  at_ = end + 1;
  last_bracket_ = at_ == line_.size() && parts_.thread != thread ? inside : std::string_view();
  if (at_ < line_.size() && line_[at_] == ':') ++at_;
  return true;
}

bool HeaderReader::content(std::string_view inside, char open, char close) {
  if (inside.empty()) return parts_.time.has_value() || at_ == 0;  // "{}", "[]"
  // WebLogic writes each part of the header in angle brackets.
  if (!parts_.time && (open == '[' || (open == '<' && at_ == 0))) {
    if (numbers_and_time(inside)) return true;
    if (auto time = read_time(inside)) {
      describe("time", open, 0);
      parts_.time = time;
      inside_time(trimmed(inside.substr(time->length)));
      describe("", 0, close);
      return true;
    }
    if (level_and_time(inside)) {
      describe("level time", open, close);
      return true;
    }
    if (at_ == 0 && since_boot(inside)) {
      describe("seconds", open, close);
      return true;
    }
  }
  if (parts_.level == Level::none) {
    // "core:notice" of Apache has the level after the colon, whereas "1", which Envoy writes there, is no level.
    const std::size_t colon = inside.rfind(':');
    const std::string_view module = colon == std::string_view::npos ? std::string_view() : inside.substr(0, colon);
    const Level level = level_of(module.empty() ? inside : inside.substr(colon + 1));
    if (level != Level::none && (module.empty() || plain_name(module))) {
      parts_.level = level;
      strong_level_ = strong_level_ || open == '[';
      if (!module.empty()) parts_.logger = module;
      describe(module.empty() ? "level" : "logger:level", open, close);
      return true;
    }
  }
  if (is_number(inside) || inside.starts_with("pid ") || inside.starts_with("tid ") || hex_pointer(inside)) {
    if (!parts_.time && at_ > 8) return false;
    describe("number", open, close);
    return true;
  }
  if (open == '<') return erlang_process(inside) && (describe("process", open, close), true);
  if (open == '{') return plain_name(inside) && (describe("id", open, close), true);
  if (!parts_.time && parts_.level == Level::none) {
    // Before any time or level, a bracket can only contain a name: "[main] 2024-06-05 ...".
    if (!plain_name(inside)) return false;
  }
  if (source_place(inside)) {
    if (parts_.logger.empty()) parts_.logger = inside.substr(0, inside.rfind(':'));
    describe("place", open, close);
    return true;
  }
  if (open == '(' && !plain_name(inside)) return false;
  if (dotted_name(inside) && parts_.logger.empty() && !parts_.thread.empty()) {
    parts_.logger = inside;
    describe("logger", open, close);
    return true;
  }
  if (parts_.thread.empty()) {
    // In TiKV and TiDB, the quoted bracket is the message: ["message"] [key=value].
    if (inside.front() == '"') return false;
    thread(inside);
    describe("thread", open, close);
    return true;
  }
  if (parts_.logger.empty() && plain_name(inside)) {
    parts_.logger = inside;
    describe("logger", open, close);
    return true;
  }
  return false;
}

void HeaderReader::inside_time(std::string_view rest) {
  while (!rest.empty()) {
    while (!rest.empty() &&
           (blank_char(rest.front()) || rest.front() == ':' || rest.front() == ',' || rest.front() == '#'))
      rest.remove_prefix(1);
    const std::size_t end = std::min(rest.find_first_of(" /"), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (parts_.level == Level::none && level_of(part) != Level::none) {
      parts_.level = level_of(part);
      describe("level");
    } else if (!part.empty() && !is_number(part) && parts_.logger.empty()) {
      parts_.logger = part;
      describe("logger");
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// The numbers before the time are those of the process and of the thread.
bool HeaderReader::numbers_and_time(std::string_view inside) {
  std::string_view rest = inside;
  for (int numbers = 0; numbers < 2; ++numbers) {
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos || !is_number(rest.substr(0, colon))) break;
    rest.remove_prefix(colon + 1);
  }
  if (rest.size() < 5 || rest[4] != '/') return false;
  const auto time = read_time(rest);
  if (!time) return false;
  parts_.time = time;
  rest.remove_prefix(time->length);
  while (!rest.empty()) {
    rest.remove_prefix(std::min(rest.find_first_not_of(':'), rest.size()));
    const std::string_view part = rest.substr(0, rest.find(':'));
    if (parts_.level == Level::none) parts_.level = level_of(part);
    else if (parts_.logger.empty()) parts_.logger = part.substr(0, part.find('('));
    rest.remove_prefix(part.size());
  }
  describe("time level place", '[', ']');
  return true;
}

bool HeaderReader::level_and_time(std::string_view inside) {
  const std::size_t end = inside.find(' ');
  if (end == std::string_view::npos || level_of(inside.substr(0, end)) == Level::none) return false;
  const std::string_view rest = trimmed(inside.substr(end));
  const auto time = read_time(rest);
  if (!time) return false;
  parts_.level = level_of(inside.substr(0, end));
  parts_.time = time;
  inside_time(trimmed(rest.substr(time->length)));
  return true;
}

bool HeaderReader::since_boot(std::string_view inside) {
  const std::size_t dot = inside.find('.');
  if (dot == std::string_view::npos || dot > 9 || inside.size() - dot != 7) return false;
  if (!is_number(inside.substr(0, dot)) || !is_number(inside.substr(dot + 1))) return false;
  std::int64_t us = 0;
  for (const char c : inside) {
    if (c != '.') us = us * 10 + (c - '0');
  }
  TimeStamp stamp;
  stamp.kind = TimeKind::since_boot;
  stamp.ns = us * 1000;
  stamp.zoned = true;
  parts_.time = stamp;
  return true;
}

bool HeaderReader::erlang_process(std::string_view inside) {
  return std::count(inside.begin(), inside.end(), '.') == 2 &&
         std::all_of(inside.begin(), inside.end(), [](char c) { return is_digit(c) || c == '.'; });
}

void HeaderReader::thread(std::string_view inside) {
  const std::size_t mark = inside.rfind('@');
  const std::size_t colon = inside.rfind(':');
  if (mark != std::string_view::npos && colon != std::string_view::npos && colon < mark &&
      is_number(inside.substr(mark + 1)) && plain_name(inside.substr(colon + 1, mark - colon - 1))) {
    parts_.thread = inside.substr(0, colon);
    if (parts_.logger.empty()) parts_.logger = inside.substr(colon + 1, mark - colon - 1);
    return;
  }
  parts_.thread = inside;
}

}  // namespace rose::logs
