#include "logs/line/header.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostSteps = 16;  // tokens of one header
// "[QuorumPeer[myid=2](plain=[0:0:0:0:0:0:0:0]:2182)(secure=disabled):QuorumPeer@917]"
constexpr std::size_t kLongestBracket = 200;
constexpr std::size_t kLongestName = 120;
constexpr std::size_t kLongestLevel = 8;

bool blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool all_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

// True for a thread id printed as an address: "7f1b2c3d4e5f", "0x7f1b2c3d4e5f".
bool hex_pointer(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return text.size() >= 8 && text.size() <= 16 &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

// True for a position in source code: "server.go:100", "QuorumPeer.java:917", "source/server/server.cc:249".
bool source_place(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !all_digits(text.substr(colon + 1))) return false;
  const std::string_view file = text.substr(0, colon);
  const std::size_t dot = file.rfind('.');
  return dot != std::string_view::npos && dot != 0 && file.size() - dot <= 6 &&
         file.find(' ') == std::string_view::npos &&
         std::all_of(file.begin() + static_cast<std::ptrdiff_t>(dot) + 1, file.end(), is_alpha);
}

// True for a qualified name: "org.apache.x.Y", "util.Server", "store::journal", "o.e.n.Node",
// "kafka.server.KafkaServer$".
bool dotted_name(std::string_view text) {
  if (text.empty() || text.size() > kLongestName || !(is_alpha(text[0]) || text[0] == '_')) return false;
  bool parts = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' || c == ':') {
      if (i + 1 == text.size()) return false;
      if (c == ':' && text[i + 1] != ':' && text[i - 1] != ':') return false;
      parts = true;
    } else if (!is_alpha(c) && !is_digit(c) && c != '_' && c != '$' && c != '-' && c != '@') {
      return false;
    }
  }
  return parts;
}

// True for a word that may be the name of a thread or logger: no blanks and no punctuation of sentences.
bool plain_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alpha(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == ':' || c == '/' || c == '#' ||
           c == '$' || c == '@';
  });
}

// The offset at which the bracket that opens at `at` is closed. npos if it is not closed within kLongestBracket.
std::size_t closing(std::string_view line, std::size_t at, char open, char close) {
  int depth = 0;
  const std::size_t end = std::min(line.size(), at + kLongestBracket);
  for (std::size_t i = at; i < end; ++i) {
    if (line[i] == open) ++depth;
    if (line[i] == close && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Parses the header of one line from left to right. Each step consumes one token, which is a time, a level, a bracket,
// a separator or a name.
class Header {
 public:
  Header(std::string_view line, Parts& parts, std::string* layout) : line_(line), parts_(parts), layout_(layout) {}

  bool read() {
    for (std::size_t i = 0; i < kMostSteps && at_ < line_.size() && !over_; ++i) {
      if (!step()) break;
    }
    if (!parts_.time && !strong_level_) return false;
    while (at_ < line_.size() && (blank(line_[at_]))) ++at_;
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

 private:
  // Appends a description of the consumed token to the layout.
  void describe(std::string_view what, char open = 0, char close = 0) {
    if (layout_ == nullptr) return;
    if (!layout_->empty() && layout_->back() != ' ') *layout_ += ' ';
    if (open != 0) *layout_ += open;
    *layout_ += what;
    if (close != 0) *layout_ += close;
  }

  // Consumes one token of the header. Returns false if the message begins here.
  bool step() {
    while (at_ < line_.size() && blank(line_[at_])) ++at_;
    if (at_ >= line_.size()) return false;
    if (pipes_ && line_[at_] == '|') return ++at_, true;
    if (!parts_.time && time_here()) return true;
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

  // Consumes a timestamp, if one begins here.
  bool time_here() {
    std::string_view rest = line_.substr(at_);
    const char first = rest[0];
    if (!is_digit(first) && !is_alpha(first) && first != '@') return false;
    // A timestamp is at the beginning of the line or after a short prefix.
    if (at_ > 60) return false;
    auto time = read_time(rest);
    const std::size_t open = std::min(rest.find('['), kLongestLevel + 1);
    if (!time && is_alpha(first) && open <= kLongestLevel && level_of(rest.substr(0, open)) != Level::none) {
      // As in Tendermint and geth: "I[2024-06-05|12:00:00.123] message", "ERROR[06-05|12:00:00.123] message".
      time = read_time(rest.substr(open + 1));
      const std::size_t end = open + 1 + (time ? time->length : 0);
      if (!time || end >= rest.size() || rest[end] != ']') return false;
      parts_.level = level_of(rest.substr(0, open));
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

  // Consumes a bracket and its content. Returns false if the bracket is not part of a header.
  bool bracket(char open, char close) {
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

  // Assigns the content of a bracket to a time, a level, a number, a position, a logger or a thread; these are tried in
  // this order. A bracket belongs to the message if nothing in it is recognised.
  bool content(std::string_view inside, char open, char close) {
    if (inside.empty()) return parts_.time.has_value() || at_ == 0;  // "{}", "[]"
    if (!parts_.time && open == '[') {
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
    if (all_digits(inside) || inside.starts_with("pid ") || inside.starts_with("tid ") || hex_pointer(inside)) {
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

  // Parses what follows the time in the same bracket: " INFO  module", ": INFO/MainProcess", " #123".
  void inside_time(std::string_view rest) {
    while (!rest.empty()) {
      while (!rest.empty() &&
             (blank(rest.front()) || rest.front() == ':' || rest.front() == ',' || rest.front() == '#'))
        rest.remove_prefix(1);
      const std::size_t end = std::min(rest.find_first_of(" /"), rest.size());
      const std::string_view part = rest.substr(0, end);
      if (parts_.level == Level::none && level_of(part) != Level::none) {
        parts_.level = level_of(part);
        describe("level");
      } else if (!part.empty() && !all_digits(part) && parts_.logger.empty()) {
        parts_.logger = part;
        describe("logger");
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  // "I 2026-01-02 03:04:05.678 store" in one bracket: Tornado, Jupyter, SiriDB.
  bool level_and_time(std::string_view inside) {
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

  // "    12.345678": the kernel's time since boot.
  bool since_boot(std::string_view inside) {
    const std::size_t dot = inside.find('.');
    if (dot == std::string_view::npos || dot > 9 || inside.size() - dot != 7) return false;
    if (!all_digits(inside.substr(0, dot)) || !all_digits(inside.substr(dot + 1))) return false;
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

  static bool erlang_process(std::string_view inside) {
    return std::count(inside.begin(), inside.end(), '.') == 2 &&
           std::all_of(inside.begin(), inside.end(), [](char c) { return is_digit(c) || c == '.'; });
  }

  // ZooKeeper writes the class after the thread: "[QuorumPeer[myid=2](plain=...):QuorumPeer@917]",
  // "[main:QuorumPeerConfig@177]".
  void thread(std::string_view inside) {
    const std::size_t mark = inside.rfind('@');
    const std::size_t colon = inside.rfind(':');
    if (mark != std::string_view::npos && colon != std::string_view::npos && colon < mark &&
        all_digits(inside.substr(mark + 1)) && plain_name(inside.substr(colon + 1, mark - colon - 1))) {
      parts_.thread = inside.substr(0, colon);
      if (parts_.logger.empty()) parts_.logger = inside.substr(colon + 1, mark - colon - 1);
      return;
    }
    parts_.thread = inside;
  }

  // Consumes a separator ('-', '|', ':'), or the character by which Redis marks the level.
  bool sign() {
    const char c = line_[at_];
    const bool alone = at_ + 1 >= line_.size() || blank(line_[at_ + 1]);
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

  // NLog: "time|LEVEL|logger|message".
  bool level_between_bars() {
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

  // True if "name - " follows.
  [[nodiscard]] bool name_and_dash() const {
    std::size_t from = at_;
    while (from < line_.size() && blank(line_[from])) ++from;
    const std::size_t end = line_.find(' ', from);
    return end != std::string_view::npos && plain_name(line_.substr(from, end - from)) && line_.substr(end, 3) == " - ";
  }

  // True if one of the next two words is a level. The current word can be part of the header only then.
  [[nodiscard]] bool level_follows(std::size_t from) const {
    for (int words = 0; words < 2; ++words) {
      while (from < line_.size() &&
             (blank(line_[from]) || line_[from] == '[' || line_[from] == '<' || line_[from] == '-'))
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

  // Consumes a word outside brackets. Returns false if the word belongs to the message.
  bool word() {
    const std::size_t end = std::min(line_.find_first_of(" \t", at_), line_.size());
    std::string_view part = line_.substr(at_, end - at_);
    const bool last = end >= line_.size();
    if (pipes_) return pipe_word();
    const bool colon = part.size() > 1 && part.back() == ':';
    const std::string_view name = colon ? part.substr(0, part.size() - 1) : part;
    const bool had_just_timed = std::exchange(just_timed_, false);

    if (parts_.level == Level::none && level_word(name, colon, had_just_timed, end)) {
      at_ = end;
      describe(colon ? "level:" : "level");
      over_ = colon && parts_.time.has_value();
      return true;
    }
    if (!parts_.time) return before_time(part, end);
    if (last) return false;
    if (all_digits(name) || hex_pointer(name)) {
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
                                                 all_digits(name.substr(0, mark)) &&
                                                 all_digits(name.substr(mark + 1))) {  // nginx: "739#739:"
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

  void assign_name(std::string_view name) {
    if (dotted_name(name) && parts_.logger.empty()) {
      parts_.logger = name;
    } else if (parts_.thread.empty()) {
      parts_.thread = name;
    } else if (parts_.logger.empty()) {
      parts_.logger = name;
    }
  }

  [[nodiscard]] bool tab_separated(std::size_t end) const {
    return end < line_.size() && line_[end] == '\t' && at_ > 0 && line_[at_ - 1] == '\t';
  }
  // True if a colon follows; blanks may precede it: "logger      : message".
  [[nodiscard]] bool next_is_colon(std::size_t end) const {
    while (end < line_.size() && line_[end] == ' ') ++end;
    return line_.substr(end, 2) == ": ";
  }
  [[nodiscard]] bool dotted_and_colon_follows(std::size_t end) const {
    while (end < line_.size() && line_[end] == ' ') ++end;
    const std::size_t stop = std::min(line_.find(' ', end), line_.size());
    return stop > end + 1 && line_[stop - 1] == ':' && dotted_name(line_.substr(end, stop - end - 1));
  }
  [[nodiscard]] bool name_before_dash(std::string_view name, std::size_t end) const {
    return plain_name(name) && line_.substr(end, 3) == " - ";
  }
  // True if the word is a level, and not the beginning of a sentence.
  bool level_word(std::string_view name, bool colon, bool just_timed, std::size_t end) {
    const Level level = level_of(name);
    if (level == Level::none) return postgres_word(name, colon);
    const bool upper = name[0] >= 'A' && name[0] <= 'Z';
    if (name.size() == 1) {
      // A single letter is a level only if the header continues after it, as in MongoDB ("I  NETWORK  [conn1]"),
      // logcat, and Ruby ("I, [").
      if (!parts_.time || !just_timed || end >= line_.size() || line_.substr(end, 2).find_first_of("\t ") != 0)
        return false;
      if (line_.substr(end, 2) != "  " && !level_like_mongo(end)) return false;
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
  static bool all_upper(std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  }
  [[nodiscard]] bool level_like_mongo(std::size_t end) const {
    const std::size_t stop = std::min(line_.find(' ', end + 1), line_.size());
    return stop > end + 3 && all_upper(line_.substr(end + 1, stop - end - 1));
  }
  bool postgres_word(std::string_view name, bool colon) {
    if (!colon || !parts_.time) return false;
    if (name == "LOG" || name == "STATEMENT" || name == "DETAIL" || name == "HINT" || name == "CONTEXT" ||
        name == "QUERY" || name == "LOCATION") {
      parts_.level = Level::info;
      return true;
    }
    return false;
  }

  // Consumes a word before the timestamp: a level ("INFO  [main] 2024-..."), Redis' process and role ("237:M"), or
  // Ruby's letter.
  bool before_time(std::string_view part, std::size_t end) {
    if (at_ > 30) return false;
    const std::size_t colon = part.find(':');
    if (at_ == 0 && part.size() - colon == 2 && colon != std::string_view::npos && all_digits(part.substr(0, colon)) &&
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
    if (parts_.level == Level::none && !strong_level_) return false;
    // A name after a level is part of the header only if a timestamp follows the name.
    std::size_t from = end;
    while (from < line_.size() && blank(line_[from])) ++from;
    if (from >= line_.size() || !plain_name(part) || !read_time(line_.substr(from))) return false;
    assign_name(part);
    at_ = end;
    describe("name");
    return true;
  }

  // Parses the fields between '|'. ActiveMQ writes logger and thread after the message. Others, such as loguru, write
  // the names before it: "time | LEVEL | 271 | module:function:line | message".
  bool pipe_word() {
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
        if (!all_digits(name)) parts_.logger = name;
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

  // Kafka writes the logger at the end: "message (kafka.server.KafkaServer)".
  void read_trailing_logger() {
    if (!parts_.logger.empty() || parts_.level == Level::none || parts_.text.empty() || parts_.text.back() != ')')
      return;
    const std::size_t open = parts_.text.rfind('(');
    if (open == std::string_view::npos || open == 0 || parts_.text[open - 1] != ' ') return;
    const std::string_view name = parts_.text.substr(open + 1, parts_.text.size() - open - 2);
    if (!dotted_name(name)) return;
    parts_.logger = name;
    parts_.text = trimmed(parts_.text.substr(0, open));
  }

  std::string_view line_;
  Parts& parts_;
  std::string* layout_;
  std::size_t at_ = 0;
  // content of a bracket that was taken for a thread; it may be the message if it ends the line
  std::string_view last_bracket_;
  bool over_ = false;          // the header is complete
  bool strong_level_ = false;  // the level was written so that it suffices for a header without a timestamp
  bool just_timed_ = false;
  bool redis_ = false, ceph_ = false, pipes_ = false;
};

struct LevelWord {
  std::string_view word;
  Level level;
};
constexpr std::array kLevelWords = std::to_array<LevelWord>({
    {"info", Level::info},        {"warn", Level::warning},    {"error", Level::error},
    {"debug", Level::debug},      {"warning", Level::warning}, {"err", Level::error},
    {"fatal", Level::fatal},      {"trace", Level::trace},     {"notice", Level::notice},
    {"note", Level::notice},      {"critical", Level::fatal},  {"crit", Level::fatal},
    {"severe", Level::error},     {"emerg", Level::fatal},     {"alert", Level::fatal},
    {"panic", Level::fatal},      {"inf", Level::info},        {"wrn", Level::warning},
    {"dbg", Level::debug},        {"trc", Level::trace},       {"ftl", Level::fatal},
    {"information", Level::info}, {"fine", Level::debug},      {"finer", Level::debug},
    {"finest", Level::trace},     {"config", Level::info},     {"system", Level::notice},
    {"emergency", Level::fatal},  {"verbose", Level::debug},   {"dpanic", Level::fatal},
    {"pnc", Level::fatal},        {"dbug", Level::debug},      {"eror", Level::error},
    {"grave", Level::error},      {"infos", Level::info},      {"advertencia", Level::warning},
    {"warnung", Level::warning},  {"i", Level::info},          {"w", Level::warning},
    {"e", Level::error},          {"d", Level::debug},         {"f", Level::fatal},
    {"t", Level::trace},          {"v", Level::debug},         {"n", Level::notice},
});

bool starts_with_any(std::string_view line, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return line.starts_with(beginning); });
}

// True for the name of an exception: "java.io.IOException", "OSError", "kafka.common.errors.TimeoutException",
// "std::bad_alloc".
bool exception_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || !(is_alpha(name[0]))) return false;
  for (const char c : name) {
    if (!is_alpha(c) && !is_digit(c) && c != '.' && c != '_' && c != '$' && c != ':') return false;
  }
  return name.ends_with("Exception") || name.ends_with("Error") || name.ends_with("Throwable") ||
         name.ends_with("Interrupt") || name.ends_with("Failure") || name.ends_with("Timeout") ||
         name.ends_with("Exit") || name.ends_with("::bad_alloc");
}

}  // namespace

std::string_view level_name(Level level) {
  constexpr std::array<std::string_view, 8> kNames = {"",       "trace",   "debug", "info",
                                                      "notice", "warning", "error", "fatal"};
  return kNames[static_cast<std::size_t>(level)];
}

Level level_of(std::string_view word) {
  if (word.empty() || word.size() > 11 || !is_alpha(word[0])) return Level::none;
  std::array<char, 11> low{};
  std::transform(word.begin(), word.end(), low.begin(), [](char c) { return lower_case(c); });
  const std::string_view wanted(low.data(), word.size());
  for (const LevelWord& level_word : kLevelWords) {
    if (level_word.word == wanted) return level_word.level;
  }
  return Level::none;
}

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

bool read_header(std::string_view line, Parts& parts, std::string* layout) {
  if (line.empty()) return false;
  parts = {};
  if (read_report(line, parts)) {
    if (layout != nullptr) *layout = "=LEVEL REPORT==== time ===";
    return true;
  }
  Parts found;
  if (!Header(line, found, layout).read()) return false;
  parts = found;
  return true;
}

bool names_exception(std::string_view line) {
  while (!line.empty() && blank(line.front())) line.remove_prefix(1);
  if (line.starts_with("Caused by: ") || line.starts_with("Suppressed: ") || line.starts_with("Exception in thread ") ||
      line.starts_with("Wrapped by: "))
    return true;
  const std::size_t end = std::min(line.find(": "), line.size());
  std::string_view name = line.substr(0, end);
  if (name.ends_with(':')) name.remove_suffix(1);
  return exception_name(name);
}

bool begins_by_itself(std::string_view line) {
  static constexpr std::array kBeginnings = std::to_array<std::string_view>({"panic: ",
                                                                             "fatal error: ",
                                                                             "runtime: ",
                                                                             "terminate called",
                                                                             "Segmentation fault",
                                                                             "Aborted",
                                                                             "Bus error",
                                                                             "Killed",
                                                                             "Illegal instruction",
                                                                             "*** ",
                                                                             "double free",
                                                                             "free(): ",
                                                                             "malloc(): ",
                                                                             "corrupted ",
                                                                             "thread '",
                                                                             "Exception in thread ",
                                                                             "Traceback (most recent call last)",
                                                                             "Fatal Python error",
                                                                             "Assertion failed",
                                                                             "SUMMARY: ",
                                                                             "==",
                                                                             "OpenJDK ",
                                                                             "# A fatal error",
                                                                             "java.lang.OutOfMemoryError",
                                                                             "Uncaught ",
                                                                             "unexpected fault address",
                                                                             "SIGSEGV",
                                                                             "SIGABRT",
                                                                             "WARNING: DATA RACE",
                                                                             "Error: ",
                                                                             "error: ",
                                                                             "ERROR: ",
                                                                             "FATAL: "});
  if (starts_with_any(line, kBeginnings)) return true;
  return line.find(": Assertion `") != std::string_view::npos;
}

bool looks_like_rest(std::string_view line) {
  if (line.empty()) return true;
  if (blank(line[0])) return true;
  static constexpr std::array kBeginnings = std::to_array<std::string_view>(
      {"at ", "Caused by: ", "Suppressed: ", "... ", "}", ")", "]", "goroutine ", "created by ",
       "Wrapped by: ", "During handling of the above", "The above exception was",
       "stack backtrace:", "note: ", "[signal ", "File \"", "main.", "runtime.", "exit status"});
  if (starts_with_any(line, kBeginnings)) return true;
  return names_exception(line) && !line.starts_with("Exception in thread");
}

}  // namespace rose::logs
