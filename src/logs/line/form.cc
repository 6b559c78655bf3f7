#include "logs/line/form.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/regex.h"
#include "logs/line/header.h"
#include "logs/line/json_line.h"
#include "logs/line/time_form.h"

namespace rose::logs {
namespace {

enum class Outer { none, docker, cri, syslog, syslog_5424, journal_json, journal_export, prefix };
// Of a pattern of rose.toml.
constexpr std::array kGroups =
    std::to_array<std::string_view>({"time", "level", "thread", "logger", "host", "message"});

enum class Kind { plain, header, json, logfmt, klog, access, custom };

bool blank_char(char c) { return c == ' ' || c == '\t'; }
bool is_number(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

// --- colours

// Colours and other commands to a terminal ("ESC[31m", "ESC]0;title BEL") are left out.
std::string_view without_colours(std::string_view line, std::string& buffer) {
  if (line.find('\x1b') == std::string_view::npos) return line;
  buffer.clear();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      buffer += line[i];
      continue;
    }
    if (i + 1 >= line.size()) break;
    if (line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < 0x40 || line[i] > 0x7e)) ++i;
    } else if (line[i + 1] == ']') {
      i += 2;
      while (i < line.size() && line[i] != '\a' && line[i] != '\x1b') ++i;
      if (i < line.size() && line[i] == '\x1b') ++i;
    } else {
      ++i;
    }
  }
  return buffer;
}

// --- what stands around

struct Outside {
  std::optional<TimeStamp> time;
  Level level = Level::none;
  std::string_view host, logger, text;
  bool partial = false;
  bool whole = false;  // it goes on with no message before
};

Level level_of_severity(int severity) {  // of syslog: 0 emergency to 7 debug
  constexpr std::array kLevels = {Level::fatal,   Level::fatal,  Level::fatal, Level::error,
                                  Level::warning, Level::notice, Level::info,  Level::debug};
  return kLevels[static_cast<std::size_t>(std::clamp(severity, 0, 7))];
}

std::optional<int> priority(std::string_view& line) {  // "<34>"
  if (line.size() < 3 || line[0] != '<') return std::nullopt;
  const std::size_t end = line.find('>');
  if (end == std::string_view::npos || end > 4 || !is_number(line.substr(1, end - 1))) return std::nullopt;
  int value = 0;
  for (const char c : line.substr(1, end - 1)) value = value * 10 + (c - '0');
  if (value > 191) return std::nullopt;
  line.remove_prefix(end + 1);
  return value;
}

std::string_view next_word(std::string_view& line) {
  while (!line.empty() && blank_char(line.front())) line.remove_prefix(1);
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// "Nov 22 18:24:21 node1 haproxy[964]: text", also with a priority before and with an ISO time.
bool read_syslog(std::string_view line, Outside& out) {
  const auto pri = priority(line);
  const auto time = read_time(line);
  if (!time || (time->kind == TimeKind::date_time && (!time->zoned || line[0] < '0' || line[0] > '9'))) return false;
  if (time->kind != TimeKind::date_time && time->kind != TimeKind::no_year) return false;
  line.remove_prefix(time->length);
  if (line.empty() || line[0] != ' ') return false;
  const std::string_view host = next_word(line);
  if (host.empty() || host.back() == ':' || host.front() == '[' || level_of(host) != Level::none) return false;
  while (!line.empty() && blank_char(line.front())) line.remove_prefix(1);
  // "tag[pid]: " or "tag: "
  const std::size_t end = line.find_first_of(":[ ");
  if (end == std::string_view::npos || end == 0 || end > 64 || line[end] == ' ') return false;
  const std::string_view tag = line.substr(0, end);
  if (level_of(tag) != Level::none) return false;
  std::size_t at = end;
  if (line[at] == '[') {
    const std::size_t close = line.find(']', at);
    if (close == std::string_view::npos || close - at > 32) return false;
    at = close + 1;
  }
  if (at >= line.size() || line[at] != ':' || (at + 1 < line.size() && line[at + 1] != ' ')) return false;
  out.time = time;
  out.host = host;
  out.logger = tag;
  out.level = pri ? level_of_severity(*pri % 8) : Level::none;
  out.text = line.substr(std::min(at + 2, line.size()));
  return true;
}

// "<165>1 2026-11-22T18:24:21.218265+00:00 host app 964 ID47 [structured data] text"
bool read_syslog_5424(std::string_view line, Outside& out) {
  const auto pri = priority(line);
  if (!pri || line.size() < 3 || line[0] < '1' || line[0] > '9' || line[1] != ' ') return false;
  line.remove_prefix(2);
  if (line.starts_with("- ")) {
    line.remove_prefix(1);
  } else {
    out.time = read_time(line);
    if (!out.time) return false;
    line.remove_prefix(out.time->length);
  }
  out.host = next_word(line);
  out.logger = next_word(line);
  (void)next_word(line);  // process
  (void)next_word(line);  // kind of message
  if (line.starts_with("[")) {
    // Structured data: elements in brackets, in which quotes hide brackets.
    while (line.starts_with("[")) {
      bool quoted = false;
      std::size_t i = 1;
      for (; i < line.size() && (quoted || line[i] != ']'); ++i) {
        if (line[i] == '\\') ++i;
        else if (line[i] == '"') quoted = !quoted;
      }
      line.remove_prefix(std::min(i + 1, line.size()));
    }
  } else if (next_word(line) != "-") {
    return false;
  }
  while (!line.empty() && blank_char(line.front())) line.remove_prefix(1);
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  if (out.host == "-") out.host = {};
  if (out.logger == "-") out.logger = {};
  out.level = level_of_severity(*pri % 8);
  out.text = line;
  return true;
}

// "2026-11-22T18:24:21.218265123Z stdout F text"
bool read_cri(std::string_view line, Outside& out) {
  const auto time = read_time(line);
  if (!time || !time->zoned || time->kind != TimeKind::date_time) return false;
  line.remove_prefix(time->length);
  if (!line.starts_with(" stdout ") && !line.starts_with(" stderr ")) return false;
  line.remove_prefix(8);
  if (line.empty() || (line[0] != 'F' && line[0] != 'P') || (line.size() > 1 && line[1] != ' ' && line[1] != ':'))
    return false;
  out.time = time;
  out.partial = line[0] == 'P';
  const std::size_t space = line.find(' ');  // "F:tag " is allowed
  out.text = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  return true;
}

// {"log":"text\n","stream":"stdout","time":"2026-11-22T18:24:21.218265123Z"}
bool read_docker(std::string_view line, JsonLine& json, Outside& out) {
  if (!line.starts_with("{\"log\":") || !json.parse(line)) return false;
  const JsonMember* text = json.find("log");
  const JsonMember* time = json.find("time");
  if (text == nullptr || !text->text || time == nullptr) return false;
  out.time = read_time(time->value);
  out.text = text->value;
  out.partial = !out.text.ends_with('\n');
  while (!out.text.empty() && (out.text.back() == '\n' || out.text.back() == '\r')) out.text.remove_suffix(1);
  return true;
}

std::int64_t number_of(std::string_view digits) {
  std::int64_t value = 0;
  for (const char c : digits.substr(0, 18)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<TimeStamp> journal_time(std::string_view microseconds) {
  const std::int64_t us = is_number(microseconds) ? number_of(microseconds) : -1;
  if (us <= 0 || us > std::int64_t{4'200'000'000} * 1'000'000) return std::nullopt;
  TimeStamp stamp;
  stamp.ns = us * 1000;
  stamp.zoned = true;
  stamp.length = microseconds.size();
  return stamp;
}

bool read_journal_json(std::string_view line, JsonLine& json, Outside& out) {
  if (!line.starts_with('{') || line.find("__REALTIME_TIMESTAMP") == std::string_view::npos || !json.parse(line))
    return false;
  const JsonMember* time = json.find("__REALTIME_TIMESTAMP");
  const JsonMember* text = json.find("MESSAGE");
  if (time == nullptr || text == nullptr) return false;
  out.time = journal_time(time->value);
  if (const JsonMember* host = json.find("_HOSTNAME")) out.host = host->value;
  if (const JsonMember* name = json.find("SYSLOG_IDENTIFIER")) out.logger = name->value;
  if (const JsonMember* level = json.find("PRIORITY"); level != nullptr && is_number(level->value))
    out.level = level_of_severity(static_cast<int>(number_of(level->value)));
  out.text = text->text ? text->value : std::string_view();
  return true;
}

// "web_1  | text" of docker compose, "[pod/x/y] text" of kubectl.
bool read_prefix(std::string_view line, Outside& out) {
  if (line.starts_with("[pod/")) {
    const std::size_t end = line.find("] ");
    if (end == std::string_view::npos || end > 200) return false;
    out.host = line.substr(5, end - 5);
    out.text = line.substr(end + 2);
    return true;
  }
  std::size_t at = 0;
  while (at < line.size() && at < 80 && !blank_char(line[at]) && line[at] != '|') ++at;
  if (at == 0 || at >= line.size() || !blank_char(line[at])) return false;
  const std::string_view name = line.substr(0, at);
  if (line.substr(at).starts_with(" exited with code ")) {  // docker compose's own word of a service
    out.host = name;
    out.text = line.substr(at + 1);
    out.whole = true;
    return true;
  }
  while (at < line.size() && line[at] == ' ') ++at;
  if (line.substr(at, 2) != "| " || level_of(name) != Level::none || read_time(line)) return false;
  out.host = name;
  out.text = line.substr(at + 2);
  return true;
}

bool read_outer(Outer outer, std::string_view line, JsonLine& json, Outside& out) {
  switch (outer) {
    case Outer::none:
    case Outer::journal_export: out.text = line; return true;
    case Outer::docker: return read_docker(line, json, out);
    case Outer::cri: return read_cri(line, out);
    case Outer::syslog: return read_syslog(line, out);
    case Outer::syslog_5424: return read_syslog_5424(line, out);
    case Outer::journal_json: return read_journal_json(line, json, out);
    case Outer::prefix: return read_prefix(line, out);
  }
  return false;
}

std::string_view outer_name(Outer outer) {
  switch (outer) {
    case Outer::none: return {};
    case Outer::docker: return "docker's JSON";
    case Outer::cri: return "containerd's lines";
    case Outer::syslog: return "syslog (RFC 3164)";
    case Outer::syslog_5424: return "syslog (RFC 5424)";
    case Outer::journal_json: return "the journal as JSON";
    case Outer::journal_export: return "the journal's export form";
    case Outer::prefix: return "lines with a service's name before them";
  }
  return {};
}

// --- a server's own lines

// "I1122 18:13:08.905878    1243 round_trippers.go:560] text"; CockroachDB has "I261122 18:13:08.905878 1243
// 3@server/x.go:560  text".
bool read_klog(std::string_view line, Parts& parts) {
  if (line.size() < 20 || line[0] < 'A' || line[0] > 'Z') return false;
  constexpr std::string_view kLetters = "DIWEF";
  if (kLetters.find(line[0]) == std::string_view::npos) return false;
  std::size_t digits = 0;
  while (digits < 9 && is_digit(line[1 + digits])) ++digits;
  if ((digits != 4 && digits != 6 && digits != 8) || line[1 + digits] != ' ') return false;
  // Month and day alone become a time without a year.
  const auto two = [&](std::size_t at) { return (line[at] - '0') * 10 + (line[at + 1] - '0'); };
  std::string_view rest = line.substr(2 + digits);
  const auto clock = read_time(rest);
  if (!clock || clock->kind != TimeKind::no_date) return false;
  const int year = digits == 4 ? 1972 : digits == 6 ? 2000 + two(1) : two(1) * 100 + two(3);
  const auto month = static_cast<unsigned>(two(digits - 3));
  const auto day = static_cast<unsigned>(two(digits - 1));
  if (month < 1 || month > 12 || day < 1 || day > 31 || year < 1970) return false;
  TimeStamp time;
  time.kind = digits == 4 ? TimeKind::no_year : TimeKind::date_time;
  time.ns = days_of(year, month, day) * 86'400'000'000'000 + clock->ns;
  parts.time = time;
  parts.level = level_of(line.substr(0, 1));
  rest.remove_prefix(clock->length);
  (void)next_word(rest);  // the thread's number
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const std::size_t end = std::min(rest.find_first_of(" ]"), rest.size());
  std::string_view place = rest.substr(0, end);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) {
    parts.text = rest;
    return true;
  }
  place = place.substr(0, colon);
  if (const std::size_t at = place.find('@'); at != std::string_view::npos) place.remove_prefix(at + 1);
  parts.logger = place;
  rest.remove_prefix(std::min(end + 1, rest.size()));
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == ']')) rest.remove_prefix(1);
  parts.text = rest;
  return true;
}

// "127.0.0.1 - - [22/Nov/2026:18:12:45 +0000] "GET / HTTP/1.1" 200 6 ...": what was asked and the answer's status are
// the text.
bool read_access(std::string_view line, Parts& parts) {
  const std::size_t open = line.find(" [");
  if (open == std::string_view::npos || open > 200) return false;
  const auto time = read_time(line.substr(open + 2));
  if (!time || time->kind != TimeKind::date_time || open + 2 + time->length >= line.size() ||
      line[open + 2 + time->length] != ']')
    return false;
  if (std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(open), ' ') < 2) return false;
  const std::string_view rest = line.substr(open + 3 + time->length);
  if (!rest.starts_with(" \"")) return false;
  parts.time = time;
  parts.text = rest.substr(1);
  const std::size_t close = parts.text.find("\" ", 1);
  if (close != std::string_view::npos && close + 2 < parts.text.size())
    parts.level = parts.text[close + 2] == '5' ? Level::error : Level::info;
  return true;
}

bool is_any(std::string_view key, std::span<const std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}
constexpr std::array kTimeKeys = std::to_array<std::string_view>(
    {"@timestamp", "ts", "time", "timestamp", "t", "date", "asctime", "datetime", "eventTime", "T", "@t", "log_time"});
constexpr std::array kLevelKeys = std::to_array<std::string_view>(
    {"level", "lvl", "severity", "log.level", "levelname", "s", "L", "@l", "@level", "loglevel", "level_name"});
constexpr std::array kTextKeys =
    std::to_array<std::string_view>({"msg", "message", "M", "@m", "@message", "event", "text", "log"});
constexpr std::array kLoggerKeys =
    std::to_array<std::string_view>({"logger", "logger_name", "loggerName", "@module", "name", "module", "component",
                                     "subsystem", "caller", "source", "c", "N", "log.logger", "C", "target"});
constexpr std::array kThreadKeys =
    std::to_array<std::string_view>({"thread", "thread_name", "threadName", "ctx", "process.thread.name"});
constexpr std::array kHostKeys = std::to_array<std::string_view>(
    {"hostname", "host.name", "pod", "pod_name", "kubernetes.pod_name"});  // "host" may be a peer's
constexpr std::array kErrorKeys =
    std::to_array<std::string_view>({"error", "err", "exception", "cause", "reason", "stack_trace", "error.message"});
constexpr std::array kStackKeys = std::to_array<std::string_view>(
    {"stacktrace", "stack", "stack_trace", "S", "exception", "exc_info", "error.stack_trace"});

std::string_view trim_place(std::string_view name) {  // "server.go:100" -> "server.go": lines differ between builds
  const std::size_t colon = name.rfind(':');
  return colon != std::string_view::npos && is_number(name.substr(colon + 1)) ? name.substr(0, colon) : name;
}

std::optional<TimeStamp> json_time(const JsonMember& member) {
  if (auto time = read_time(member.value)) return time;
  if (const std::size_t date = member.value.find("\"$date\":\""); date != std::string_view::npos)  // MongoDB
    return read_time(member.value.substr(date + 9));
  return std::nullopt;
}

Level json_level(const JsonMember& member) {
  if (!is_number(member.value)) return level_of(member.value);
  const std::int64_t value = number_of(member.value);  // of bunyan and pino
  return value >= 60   ? Level::fatal
         : value >= 50 ? Level::error
         : value >= 40 ? Level::warning
         : value >= 30 ? Level::info
         : value >= 20 ? Level::debug
                       : Level::trace;
}

// Fields as members: what is time, level, logger and thread goes there, the rest becomes the text: the message, then
// errors, then "key=value" of the others, a stack trace at the end on lines of its own.
bool read_fields(const std::vector<JsonMember>& members, Parts& parts, std::string& text) {
  const JsonMember* message = nullptr;
  const JsonMember* time = nullptr;
  const JsonMember* level = nullptr;
  const JsonMember* logger = nullptr;
  const JsonMember* thread = nullptr;
  const auto first_of = [&](const JsonMember*& into, std::span<const std::string_view> keys) {
    for (const std::string_view key : keys) {
      for (const JsonMember& one : members) {
        if (one.key == key && &one != time && &one != message) return void(into = &one);
      }
    }
  };
  for (const std::string_view key : kTimeKeys)  // "time" may be how long it took
    for (const JsonMember& one : members)
      if (!parts.time && one.key == key && (parts.time = json_time(one))) time = &one;
  first_of(message, kTextKeys);
  first_of(level, kLevelKeys);
  if (level != nullptr) parts.level = json_level(*level);
  if (parts.level == Level::none) level = nullptr;
  if (time == nullptr && level == nullptr) return false;
  first_of(logger, kLoggerKeys);
  first_of(thread, kThreadKeys);
  if (logger != nullptr && !logger->text) logger = nullptr;
  if (logger != nullptr) parts.logger = trim_place(logger->value);
  if (thread != nullptr) parts.thread = thread->value;
  const JsonMember* host = nullptr;
  first_of(host, kHostKeys);
  if (host != nullptr && host->text) parts.host = host->value;
  text.clear();
  if (message != nullptr) text += message->value;
  const auto add = [&](const JsonMember& one) {
    if (!text.empty()) text += ' ';
    text += one.key;
    text += '=';
    text += one.value;
  };
  const auto is_error = [](const JsonMember& one) { return is_any(one.key, kErrorKeys); };
  const auto is_stack = [](const JsonMember& one) {
    return one.value.find('\n') != std::string_view::npos && is_any(one.key, kStackKeys);
  };
  for (const JsonMember& one : members) {
    if (&one != message && is_error(one) && !is_stack(one)) add(one);
  }
  for (const JsonMember& one : members) {
    if (&one == message || &one == time || &one == level || &one == logger || &one == thread || is_error(one) ||
        is_stack(one))
      continue;
    if (is_any(one.key, kLoggerKeys) && one.key == "caller") continue;
    add(one);
  }
  for (const JsonMember& one : members) {
    if (&one == message || !is_stack(one)) continue;
    text += '\n';
    text += one.value;
  }
  parts.text = text;
  return true;
}

// "ts=2026-11-22T18:14:15.704Z caller=main.go:513 level=info msg="No time" duration=15d": false where it is no such
// line.
bool parse_logfmt(std::string_view line, std::vector<JsonMember>& members, std::string& buffer) {
  members.clear();
  buffer.clear();
  buffer.reserve(line.size());  // views into it are kept
  std::size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && blank_char(line[at])) ++at;
    if (at >= line.size()) break;
    const std::size_t begin = at;
    while (at < line.size() && line[at] != '=' && !blank_char(line[at]) && line[at] != '"') ++at;
    if (at >= line.size() || line[at] != '=' || at == begin || members.size() > 255) return false;
    JsonMember member;
    member.key = line.substr(begin, at - begin);
    member.text = true;
    ++at;
    if (at < line.size() && line[at] == '"') {
      const std::size_t from = buffer.size();
      for (++at; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) {
          ++at;
          buffer += line[at] == 'n' ? '\n' : line[at] == 't' ? '\t' : line[at];
        } else {
          buffer += line[at];
        }
      }
      if (at >= line.size()) return false;
      ++at;
      member.value = std::string_view(buffer).substr(from);
    } else {
      const std::size_t from = at;
      while (at < line.size() && !blank_char(line[at])) ++at;
      member.value = line.substr(from, at - from);
    }
    members.push_back(member);
  }
  return members.size() >= 2;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::plain: return "text without times";
    case Kind::header: return {};
    case Kind::json: return "JSON, one object per line";
    case Kind::logfmt: return "key=value";
    case Kind::klog: return "glog";
    case Kind::access: return "a web server's access log";
    case Kind::custom: return "the pattern of rose.toml";
  }
  return {};
}

}  // namespace

std::string pattern_problem(const std::string& pattern) {
  const Regex regex(pattern);
  if (const std::string problem = regex.problem(); !problem.empty())
    return fmt::format("is not a regular expression (RE2): {}", problem);
  bool message = false;
  for (const auto& [name, index] : regex.groups()) {
    if (!is_any(name, kGroups))
      return fmt::format("has a group named '{}', accepted are time, level, thread, logger, host and message", name);
    if (static_cast<std::size_t>(index) >= Regex::kMostGroups)
      return fmt::format("has more than {} groups", Regex::kMostGroups - 1);
    message = message || name == "message";
  }
  return message ? "" : "has no group named message: (?P<message>...) is needed";
}

struct Form::Inner {
  Outer outer = Outer::none;
  Kind kind = Kind::plain;
  std::vector<Kind> also;  // further kinds that some lines of the sample fit
  std::string layout;
  const CustomForm* custom = nullptr;
  std::optional<Regex> regex;
  std::array<std::size_t, kGroups.size()> groups{};  // of the pattern, in that order; 0: none
  JsonLine outer_json, json;
  std::vector<JsonMember> members;
  std::string colours, fields, values;
  bool open = false;       // the last line was cut by the container's log and goes on in the next one
  std::size_t strays = 0;  // lines in a row that fit nothing and were taken for the rest of a message

  bool read_custom(std::string_view line, Parts& parts) {
    std::array<std::string_view, Regex::kMostGroups> found;
    if (!regex->find(line, found)) return false;
    const auto group = [&](std::size_t index) {
      return groups[index] == 0 ? std::string_view() : found[groups[index]];
    };
    if (const std::string_view time = group(0); !time.empty())
      parts.time = custom->time.empty() ? read_time(time) : read_time_as(time, custom->time);
    parts.level = level_of(group(1));
    parts.thread = group(2);
    parts.logger = group(3);
    parts.host = group(4);
    parts.text = group(5);
    return true;
  }

  // What put a time before each line (`kubectl logs --timestamps`, `docker logs -t`) left the program's own behind it,
  // and the level.
  void look_inside(Parts& parts) {
    if (!parts.time || parts.level != Level::none || parts.text.empty()) return;
    Parts inside;
    const bool object =
        parts.text.front() == '{' && json.parse(parts.text) && read_fields(json.members(), inside, fields);
    if (!object && !(read_time(parts.text) && read_header(parts.text, inside))) return;
    if (!inside.time || (!object && inside.time->kind != TimeKind::date_time)) return;
    parts.level = inside.level;
    parts.text = inside.text;
    if (!inside.logger.empty()) parts.logger = inside.logger;
    if (!inside.thread.empty()) parts.thread = inside.thread;
  }

  bool read(Kind which, std::string_view line, Parts& parts) {
    switch (which) {
      case Kind::plain: return false;
      case Kind::header:
        if (!read_header(line, parts)) return false;
        look_inside(parts);
        return true;
      case Kind::json: return line.starts_with('{') && json.parse(line) && read_fields(json.members(), parts, fields);
      case Kind::logfmt: return parse_logfmt(line, members, values) && read_fields(members, parts, fields);
      case Kind::klog: return read_klog(line, parts);
      case Kind::access: return read_access(line, parts);
      case Kind::custom: return read_custom(line, parts);
    }
    return false;
  }

  Took take_inner(std::string_view text, Parts& parts) {
    parts = {};
    text = without_colours(text, colours);
    if (read(kind, text, parts)) return strays = 0, Took::message;
    for (const Kind other : also) {
      parts = {};
      if (read(other, text, parts)) return strays = 0, Took::message;
    }
    parts = {};
    parts.text = text;
    if (text.empty()) return Took::nothing;
    if (begins_by_itself(text)) return strays = 0, Took::message;
    if (looks_like_rest(text)) return Took::rest;
    if (kind == Kind::plain) return Took::message;
    // Between timed lines a stray one belongs to what stands before it; a page of them is a log of its own.
    constexpr std::size_t kMostStrays = 64;
    return ++strays > kMostStrays ? Took::message : Took::rest;
  }
};

Form::Form() : inner_(std::make_unique<Inner>()) {}
Form::Form(Form&&) noexcept = default;
Form& Form::operator=(Form&&) noexcept = default;
Form::~Form() = default;

Took Form::take(std::string_view line, Parts& parts) {
  Inner& in = *inner_;
  if (in.outer == Outer::none || in.outer == Outer::journal_export) return in.take_inner(line, parts);
  Outside out;
  if (!read_outer(in.outer, line, in.outer_json, out)) {
    // Not wrapped: what a tool put between, or the rest of a message whose line feeds were kept.
    return in.take_inner(line, parts);
  }
  if (std::exchange(in.open, out.partial)) {
    parts = {};
    parts.text = out.text;
    return Took::joined;
  }
  const Took took = in.take_inner(out.text, parts);
  // What stands around has the better time: with a date and a zone, of one clock for all that the container says.
  if (out.time) parts.time = out.time;
  if (parts.level == Level::none) parts.level = out.level;
  if (parts.logger.empty()) parts.logger = out.logger;
  if (parts.host.empty()) parts.host = out.host;
  // Of a message of one line only the journal knows that it is whole.
  if (took == Took::rest && (out.whole || in.outer == Outer::journal_json)) return Took::message;
  return took;
}

Took Form::take_inner(std::string_view text, Parts& parts) { return inner_->take_inner(text, parts); }

bool Form::is_journal_export() const { return inner_->outer == Outer::journal_export; }

std::string Form::words() const {
  std::string inner(kind_name(inner_->kind));
  if (inner_->kind == Kind::header) inner = fmt::format("'{}'", inner_->layout);
  const std::string_view outer = outer_name(inner_->outer);
  if (outer.empty()) return inner;
  if (inner_->kind == Kind::plain) return std::string(outer);
  return fmt::format("{} around {}", outer, inner);
}

namespace {

Outer choose_outer(std::span<const std::string> sample, JsonLine& json) {
  if (!sample.empty() && (sample[0].starts_with("__CURSOR=") || sample[0].starts_with("__REALTIME_TIMESTAMP=")))
    return Outer::journal_export;
  constexpr std::array kOuters = {Outer::docker, Outer::cri,          Outer::syslog_5424,
                                  Outer::syslog, Outer::journal_json, Outer::prefix};
  for (const Outer outer : kOuters) {
    std::size_t fits = 0, lines = 0;
    for (const std::string& line : sample) {
      Outside out;
      if (line.empty()) continue;
      // journalctl's own text form indents what follows in a message.
      if (blank_char(line[0])) continue;
      ++lines;
      fits += read_outer(outer, line, json, out) ? 1 : 0;
    }
    if (lines != 0 && fits * 10 >= lines * 7) return outer;
  }
  return Outer::none;
}

}  // namespace

Form Form::choose(std::span<const std::string> sample, const CustomForm* custom) {
  Form form;
  Inner& in = *form.inner_;
  in.outer = choose_outer(sample, in.outer_json);
  if (custom != nullptr && !custom->pattern.empty()) {
    in.custom = custom;
    in.regex.emplace(custom->pattern);
    for (const auto& [name, index] : in.regex->groups()) {
      const auto at = std::find(kGroups.begin(), kGroups.end(), name);
      if (at != kGroups.end() && static_cast<std::size_t>(index) < Regex::kMostGroups)
        in.groups[static_cast<std::size_t>(at - kGroups.begin())] = static_cast<std::size_t>(index);
    }
    in.kind = Kind::custom;
    // A pattern describes what the program wrote, not what a container's runtime or the journal put around it.
    if (in.outer == Outer::syslog || in.outer == Outer::syslog_5424 || in.outer == Outer::prefix)
      in.outer = Outer::none;
    return form;
  }
  constexpr std::array kKinds = {Kind::json, Kind::klog, Kind::access, Kind::logfmt, Kind::header};
  std::array<std::size_t, kKinds.size()> fits{};
  std::string colours;
  for (const std::string& line : sample) {
    Outside out;
    if (!read_outer(in.outer, line, in.outer_json, out)) continue;
    const std::string_view text = without_colours(out.text, colours);
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      Parts parts;
      if (!in.read(kKinds[i], text, parts)) continue;
      ++fits[i];
      if (kKinds[i] == Kind::header && in.layout.empty() && parts.time) (void)read_header(text, parts, &in.layout);
      break;  // the first that fits: the more particular ones stand first
    }
  }
  const std::size_t best = static_cast<std::size_t>(std::max_element(fits.begin(), fits.end()) - fits.begin());
  if (fits[best] != 0) in.kind = kKinds[best];
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (i != best && fits[i] != 0) in.also.push_back(kKinds[i]);
  }
  if (in.kind == Kind::header && in.layout.empty()) in.layout = "level message";
  return form;
}

}  // namespace rose::logs
