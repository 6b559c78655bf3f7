#include "logs/line/fields.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "logs/line/chars.h"
#include "logs/line/nested_host.h"

namespace rose::logs {
namespace {

constexpr std::array kTimeKeys =
    std::to_array<std::string_view>({"@timestamp", "ts", "time", "timestamp", "t", "date", "asctime", "datetime",
                                     "eventTime", "T", "@t", "log_time", "DateTime", "Time"});
constexpr std::array kLevelKeys =
    std::to_array<std::string_view>({"level", "lvl", "severity", "log.level", "levelname", "s", "L", "@l", "@level",
                                     "loglevel", "level_name", "Severity"});
constexpr std::array kTextKeys = std::to_array<std::string_view>(
    {"msg", "message", "M", "@m", "@message", "event", "text", "log", "full_message", "short_message"});
constexpr std::array kLoggerKeys =
    std::to_array<std::string_view>({"logger", "logger_name", "loggerName", "@module", "name", "module", "component",
                                     "subsystem", "caller", "source", "c", "N", "log.logger", "C", "target"});
constexpr std::array kThreadKeys =
    std::to_array<std::string_view>({"thread", "thread_name", "threadName", "ctx", "process.thread.name"});
constexpr std::array kHostKeys = std::to_array<std::string_view>(
    // "host" is not among them, because it may name a peer
    {"hostname", "host.name", "pod", "pod_name", "kubernetes.pod_name"});
constexpr std::array kGelfHostKeys = std::to_array<std::string_view>({"host"});  // in GELF, "host" is the sender
constexpr std::array kErrorKeys =
    std::to_array<std::string_view>({"error", "err", "exception", "cause", "reason", "stack_trace", "error.message"});
constexpr std::array kStackKeys = std::to_array<std::string_view>(
    {"stacktrace", "stack", "stack_trace", "S", "exception", "exc_info", "error.stack_trace"});

// Removes the line number, because it differs between builds: "server.go:100" gives "server.go".
std::string_view without_line_number(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  return colon != std::string_view::npos && is_number(name.substr(colon + 1)) ? name.substr(0, colon) : name;
}

std::optional<TimeStamp> json_time(const JsonMember& member) {
  if (auto time = read_time(member.value)) return time;
  if (const std::size_t date = member.value.find("\"$date\":\""); date != std::string_view::npos)  // MongoDB
    return read_time(member.value.substr(date + 9));
  return std::nullopt;
}

// Converts the name or the number of a level. A number is on the scale of Monolog (100 to 600), of bunyan and pino (10
// to 60), or of GELF (0 to 7, as in syslog). If the line is not GELF, a number below 10 is on an unknown scale, so the
// level is unknown, too.
Level json_level(const JsonMember& member, bool gelf) {
  if (!is_number(member.value)) return level_of(member.value);
  const std::int64_t value = number_of(member.value);
  if (value < 10) return gelf ? level_of_severity(static_cast<int>(value)) : Level::none;
  const std::int64_t step = value >= 100 ? value / 10 + 10 : value;
  return step >= 60   ? Level::fatal
         : step >= 50 ? Level::error
         : step >= 40 ? Level::warning
         : step >= 30 ? Level::info
         : step >= 20 ? Level::debug
                      : Level::trace;
}

}  // namespace

bool read_fields(const std::vector<JsonMember>& members, Parts& parts, std::string& text, std::string& nested) {
  const JsonMember* message = nullptr;
  const JsonMember* time = nullptr;
  const JsonMember* level = nullptr;
  const JsonMember* logger = nullptr;
  const JsonMember* thread = nullptr;
  const bool gelf = std::ranges::find(members, "short_message", &JsonMember::key) != members.end();
  const auto first_of = [&](const JsonMember*& into, std::span<const std::string_view> keys) {
    for (const std::string_view key : keys) {
      for (const JsonMember& member : members) {
        if (member.key == key && &member != time && &member != message) return void(into = &member);
      }
    }
  };
  for (const std::string_view key : kTimeKeys)  // skip a value that is no timestamp, for example a duration in "time"
    for (const JsonMember& member : members)
      if (!parts.time && member.key == key && (parts.time = json_time(member))) time = &member;
  first_of(message, kTextKeys);
  first_of(level, kLevelKeys);
  if (level != nullptr) parts.level = json_level(*level, gelf);
  if (parts.level == Level::none && level != nullptr && !is_number(level->value)) level = nullptr;
  if (time == nullptr && level == nullptr) return false;
  first_of(logger, kLoggerKeys);
  first_of(thread, kThreadKeys);
  if (logger != nullptr && !logger->text) logger = nullptr;
  if (logger != nullptr) parts.logger = without_line_number(logger->value);
  if (thread != nullptr) parts.thread = thread->value;
  const JsonMember* host = nullptr;
  first_of(host, gelf ? std::span<const std::string_view>(kGelfHostKeys) : kHostKeys);
  if (host != nullptr && host->text) {
    parts.host = host->value;
  } else {
    nested = nested_host(members, Named::inside);
    parts.host = nested;
  }
  text.clear();
  if (message != nullptr) text += message->value;
  const auto add = [&](const JsonMember& member) {
    if (!text.empty()) text += ' ';
    text += member.key;
    text += '=';
    text += member.value;
  };
  const auto is_error = [](const JsonMember& member) { return is_any(member.key, kErrorKeys); };
  const auto is_stack = [](const JsonMember& member) {
    return member.value.find('\n') != std::string_view::npos && is_any(member.key, kStackKeys);
  };
  for (const JsonMember& member : members) {
    if (&member != message && is_error(member) && !is_stack(member)) add(member);
  }
  for (const JsonMember& member : members) {
    if (&member == message || &member == time || &member == level || &member == logger || &member == thread ||
        is_error(member) || is_stack(member) ||
        (gelf && (member.key == "short_message" || member.key == "version" || &member == host)))
      continue;
    if (member.key == "caller") continue;
    add(member);
  }
  for (const JsonMember& member : members) {
    if (&member == message || !is_stack(member)) continue;
    text += '\n';
    text += member.value;
  }
  parts.text = text;
  return true;
}

bool parse_logfmt(std::string_view line, std::vector<JsonMember>& members, std::string& buffer) {
  members.clear();
  buffer.clear();
  buffer.reserve(line.size());  // prevents reallocation, which would invalidate the members' views into the buffer
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

std::string_view attributes_of(std::string_view line) {
  if (!line.starts_with('<') || !line.ends_with("/>")) return line;
  line.remove_suffix(2);
  return line.substr(std::min(line.find(' '), line.size()));
}

}  // namespace rose::logs
