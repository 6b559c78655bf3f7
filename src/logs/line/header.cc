#include "logs/line/header.h"

#include <algorithm>

#include "base/ascii.h"
#include "logs/line/chars.h"
#include "logs/line/header_reader.h"
#include "logs/line/tokens.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostSteps = 16;  // the most tokens of one header
constexpr std::size_t kLongestLevel = 8;

// Reads the first line of a report in Erlang: "=ERROR REPORT==== 5-Jun-2024::12:00:00 ===". The lines after it are the
// text.
bool read_report(std::string_view line, Parts& parts) {
  constexpr std::string_view kReport = " REPORT==== ";
  const std::size_t report = line.find(kReport);
  if (line[0] != '=' || report == std::string_view::npos || report > 12) return false;
  const std::string_view kind = line.substr(1, report - 1);
  const auto time = read_time(line.substr(report + kReport.size()));
  if (!time) return false;
  parts.time = time;
  parts.level = kind == "CRASH" || kind == "SUPERVISOR" ? Level::error : level_of(kind);
  parts.text = {};
  return true;
}

}  // namespace

bool HeaderReader::read() {
  for (std::size_t i = 0; i < kMostSteps && at_ < line_.size() && !over_; ++i) {
    if (!step()) break;
  }
  if (!parts_.time && !strong_level_) return false;
  while (at_ < line_.size() && (blank_char(line_[at_]))) ++at_;
  parts_.text = line_.substr(at_);
  // In "ERROR [connection to 10.0.0.2 refused]", the phrase in brackets that ends the line is the message.
  if (parts_.text.empty() && std::count(last_bracket_.begin(), last_bracket_.end(), ' ') > 1) {
    if (parts_.thread == last_bracket_) parts_.thread = {};
    parts_.text = last_bracket_;
  }
  read_trailing_logger();
  describe("message");
  return true;
}

void HeaderReader::describe(std::string_view what, char open, char close) {
  if (layout_ == nullptr) return;
  if (!layout_->empty() && layout_->back() != ' ') *layout_ += ' ';
  if (open != 0) *layout_ += open;
  *layout_ += what;
  if (close != 0) *layout_ += close;
}

bool HeaderReader::step() {
  while (at_ < line_.size() && blank_char(line_[at_])) ++at_;
  if (at_ >= line_.size()) return false;
  if (pipes_ && line_[at_] == '|') return ++at_, true;
  if (!parts_.time && (time_here() || marked_time())) return true;
  switch (line_[at_]) {
    case '[': return bracket('[', ']');
    case '(': return parts_.time && bracket('(', ')');
    case '<': return bracket('<', '>');
    case '{': return parts_.time && !parts_.thread.empty() && bracket('{', '}');
    case '-':
    case '|':
    case '*':
    case '#':
    case '.':
    case ':':
    case ',': return sign();
    default: return word();
  }
}

bool HeaderReader::time_here() {
  std::string_view rest = line_.substr(at_);
  const char first = rest[0];
  if (!is_digit(first) && !is_alpha(first) && first != '@') return false;
  // A timestamp is at the beginning of the line or after a short prefix.
  if (at_ > 60) return false;
  auto time = read_time(rest);
  const std::size_t open = std::min(rest.find('['), kLongestLevel + 1);
  if (!time && is_alpha(first) && open <= kLongestLevel && level_of(trimmed(rest.substr(0, open))) != Level::none) {
    // As in Tendermint, geth and CUPS: "I[2024-06-05|12:00:00.123] message", "ERROR[06-05|12:00:00.123] message",
    // "E [05/Jun/2024:12:00:00 +0000] message".
    time = read_time(rest.substr(open + 1));
    const std::size_t end = open + 1 + (time ? time->length : 0);
    if (!time || end >= rest.size() || rest[end] != ']') return false;
    parts_.level = level_of(trimmed(rest.substr(0, open)));
    parts_.time = time;
    at_ += end + 1;
    describe("level[time]");
    return true;
  }
  if (!time) return false;
  const std::size_t end = at_ + time->length;
  if (end < line_.size() && (is_alpha(line_[end]) || is_digit(line_[end]))) return false;
  parts_.time = time;
  at_ = end;
  describe("time");
  // The header may end here ("1795371164: message") or continue ("2026-11-22 18:13:00 - name - INFO - message").
  if (at_ < line_.size() && line_[at_] == ':') ++at_;
  just_timed_ = true;
  return true;
}

bool HeaderReader::marked_time() {
  constexpr std::string_view kMarks = "{(|*~#=-+_/:;", kClosed = "})";
  constexpr std::size_t kMostMarks = 4;
  const std::size_t first = line_.find_first_not_of(" \t");
  if (at_ != first) return false;
  const char open = line_[at_];
  const std::size_t mark = kMarks.find(open);
  if (mark == std::string_view::npos) return false;
  const char close = mark < kClosed.size() ? kClosed[mark] : open;
  std::size_t from = line_.find_first_not_of(open, at_);
  if (from == std::string_view::npos || from - at_ > kMostMarks) return false;
  const std::size_t marks = from - at_;
  if (line_[from] == ' ') ++from;
  if (from >= line_.size() || !is_digit(line_[from])) return false;
  const auto time = read_time(line_.substr(from));
  if (!time) return false;
  std::size_t end = from + time->length;
  if (end < line_.size() && line_[end] == ' ') ++end;
  const std::size_t after = std::min(line_.find_first_not_of(close, end), line_.size());
  if (after - end != marks || (after < line_.size() && !blank_char(line_[after]))) return false;
  parts_.time = time;
  at_ = after;
  describe("time", open, close);
  return true;
}

bool HeaderReader::sign() {
  const char c = line_[at_];
  const bool alone = at_ + 1 >= line_.size() || blank_char(line_[at_ + 1]);
  if (c == '-' && line_.substr(at_, 3) == "---") {  // Spring
    at_ += 3;
    describe("---");
    return true;
  }
  if (c == '-' && line_.substr(at_, 2) == "--" && parts_.level != Level::none) {  // Ruby: "INFO -- : message"
    at_ += 2;
    return true;
  }
  if (c == '|' && just_timed_ && !alone) return level_between_bars();
  if (!alone) return false;
  if ((c == '*' || c == '#' || c == '.' || c == '-') && redis_) {
    parts_.level = c == '#' ? Level::warning : c == '*' ? Level::notice : c == '-' ? Level::info : Level::debug;
    ++at_;
    describe("mark");
    over_ = true;
    return true;
  }
  if (c == '-' || c == ':' || c == '|') {
    if (!parts_.time && parts_.level == Level::none) return false;
    ++at_;
    describe(std::string_view(&c, 1));
    if (c == '|' && just_timed_) {
      pipes_ = true;  // ActiveMQ: "time | LEVEL | message | logger | thread"
      return true;
    }
    // A dash after time and level ends the header, unless another name with a dash follows.
    over_ = parts_.level != Level::none && !name_and_dash();
    return true;
  }
  return false;
}

bool HeaderReader::level_between_bars() {
  const std::size_t bar = line_.find('|', at_ + 1);
  if (bar == std::string_view::npos) return false;
  const Level level = level_of(trimmed(line_.substr(at_ + 1, bar - at_ - 1)));
  if (level == Level::none) return false;
  parts_.level = level;
  at_ = bar + 1;
  describe("|level|");
  const std::size_t next = line_.find('|', at_);
  if (next != std::string_view::npos && plain_name(trimmed(line_.substr(at_, next - at_)))) {
    parts_.logger = trimmed(line_.substr(at_, next - at_));
    at_ = next + 1;
    describe("logger|");
  }
  over_ = true;
  return true;
}

bool HeaderReader::name_and_dash() const {
  std::size_t from = at_;
  while (from < line_.size() && blank_char(line_[from])) ++from;
  const std::size_t end = line_.find(' ', from);
  return end != std::string_view::npos && plain_name(line_.substr(from, end - from)) && line_.substr(end, 3) == " - ";
}

void HeaderReader::read_trailing_logger() {
  if (!parts_.logger.empty() || parts_.level == Level::none || parts_.text.empty() || parts_.text.back() != ')') return;
  const std::size_t open = parts_.text.rfind('(');
  if (open == std::string_view::npos || open == 0 || parts_.text[open - 1] != ' ') return;
  const std::string_view name = parts_.text.substr(open + 1, parts_.text.size() - open - 2);
  if (!dotted_name(name)) return;
  parts_.logger = name;
  parts_.text = trimmed(parts_.text.substr(0, open));
}

bool read_header(std::string_view line, Parts& parts, std::string* layout) {
  if (line.empty()) return false;
  parts = {};
  if (read_report(line, parts)) {
    if (layout != nullptr) *layout = "=LEVEL REPORT==== time ===";
    return true;
  }
  Parts found;
  if (!HeaderReader(line, found, layout).read()) return false;
  parts = found;
  return true;
}

}  // namespace rose::logs
