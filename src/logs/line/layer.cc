#include "logs/line/layer.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/ascii.h"
#include "logs/line/chars.h"
#include "logs/line/header.h"

namespace rose::logs {
namespace {

constexpr std::size_t kLongestOrigin = 200;  // characters of a node's name, including the folders of its file

std::size_t leading_blanks(std::string_view text) { return std::min(text.find_first_not_of(" \t"), text.size()); }

std::optional<int> priority(std::string_view& line) {  // such as "<34>"
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

// Reads "Nov 22 18:24:21 node1 haproxy[964]: text". A priority ("<34>") may precede, and the timestamp may be in ISO
// format.
bool read_syslog(std::string_view line, LayerFields& out) {
  const auto pri = priority(line);
  const auto time = read_time(line);
  if (!time || (time->kind == TimeKind::date_time && (!time->zoned || line[0] < '0' || line[0] > '9'))) return false;
  if (time->kind != TimeKind::date_time && time->kind != TimeKind::no_year) return false;
  line.remove_prefix(time->length);
  if (line.empty() || line[0] != ' ') return false;
  const std::string_view host = next_word(line);
  if (host.empty() || host.back() == ':' || host.front() == '[' || level_of(host) != Level::none) return false;
  while (!line.empty() && blank_char(line.front())) line.remove_prefix(1);
  // The tag ends as in "tag[pid]: " or "tag: ".
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

// Reads "<165>1 2026-11-22T18:24:21.218265+00:00 host app 964 ID47 [structured data] text".
bool read_syslog_5424(std::string_view line, LayerFields& out) {
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
  (void)next_word(line);  // process id
  (void)next_word(line);  // message id
  if (line.starts_with("[")) {
    // Structured data consist of elements in brackets. Brackets inside quotes do not count.
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

// Reads "2026-11-22T18:24:21.218265123Z stdout F text".
bool read_cri(std::string_view line, LayerFields& out) {
  const auto time = read_time(line);
  if (!time || !time->zoned || time->kind != TimeKind::date_time) return false;
  line.remove_prefix(time->length);
  if (!line.starts_with(" stdout ") && !line.starts_with(" stderr ")) return false;
  line.remove_prefix(8);
  if (line.empty() || (line[0] != 'F' && line[0] != 'P') || (line.size() > 1 && line[1] != ' ' && line[1] != ':'))
    return false;
  out.time = time;
  out.partial = line[0] == 'P';
  const std::size_t space = line.find(' ');  // a tag may follow the F: "F:tag "
  out.text = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  return true;
}

// Reads {"log":"text\n","stream":"stdout","time":"2026-11-22T18:24:21.218265123Z"}.
bool read_docker(std::string_view line, JsonLine& json, LayerFields& out) {
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

std::optional<TimeStamp> journal_time(std::string_view microseconds) {
  const std::int64_t us = is_number(microseconds) ? number_of(microseconds) : -1;
  if (us <= 0 || us > std::int64_t{4'200'000'000} * 1'000'000) return std::nullopt;
  TimeStamp stamp;
  stamp.ns = us * 1000;
  stamp.zoned = true;
  stamp.length = microseconds.size();
  return stamp;
}

// Reads "Sat, Jan 28 2026 3:58:55 am | text". A web page added this timestamp to a line that has its own.
bool read_page_time(std::string_view line, LayerFields& out) {
  constexpr std::size_t kLongestShown = 40;
  const std::size_t bar = line.substr(0, kLongestShown).find(" | ");
  if (bar == std::string_view::npos) return false;
  const std::string_view shown = line.substr(0, bar);
  const std::size_t colon = shown.find(':');
  if (colon == std::string_view::npos || colon == 0 || !is_digit(shown[colon - 1]) || shown.find(' ') == shown.npos)
    return false;
  out.text = line.substr(bar + 3);
  // If the timestamp is in a usual format, the program itself wrote it, unless the line has another one.
  const auto own = read_time(shown);
  Parts parts;
  return !own || own->length != shown.size() || (read_header(out.text, parts) && parts.time);
}

// Reads "web_1  | text" of docker compose and "[pod/x/y] text" of kubectl.
bool read_prefix(std::string_view line, LayerFields& out) {
  if (line.starts_with("[pod/")) {
    const std::size_t end = line.find("] ");
    if (end == std::string_view::npos || end > 200) return false;
    out.host = line.substr(5, end - 5);
    out.text = line.substr(end + 2);
    return true;
  }
  if (read_page_time(line, out)) return true;
  std::size_t at = 0;
  while (at < line.size() && at < 80 && !blank_char(line[at]) && line[at] != '|') ++at;
  if (at == 0 || at >= line.size() || !blank_char(line[at])) return false;
  const std::string_view name = line.substr(0, at);
  if (line.substr(at).starts_with(" exited with code ")) {  // docker compose itself reports this about a service
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

// --- Exports of collectors.

// The fields that contain a program's whole line. "message" and "msg" are not among them, because an object with those
// has further fields of the same message, so it is the program's own form.
constexpr std::array kWholeLineKeys = std::to_array<std::string_view>({"log", "line", "_raw", "textPayload", "Line"});
constexpr std::array kEnvelopeTimeKeys = std::to_array<std::string_view>(
    {"@timestamp", "timestamp", "time", "ts", "date", "_time", "Time", "receiveTimestamp"});
// The fields that name the host or pod which wrote a line, the most specific first. "host" may also name a peer, so it
// is used only in objects that describe the origin of a line.
constexpr std::array kHostNames = std::to_array<std::string_view>(
    {"pod_name", "pod", "podName", "k8s.pod.name", "kubernetes.pod_name", "kubernetes.pod.name", "hostname",
     "host.name", "node_name", "host", "nodename", "instance", "instance_id", "container_name", "container",
     "logStreamName", "service"});
// The objects that describe the origin of a line.
constexpr std::array kOriginKeys = std::to_array<std::string_view>(
    {"kubernetes", "k8s", "labels", "resource", "stream", "fields", "docker", "agent", "host", "pod", "attributes",
     "metadata", "container", "_source", "cloud", "orchestrator"});

bool is_object(const JsonMember& member) { return !member.text && member.value.starts_with('{'); }

// Decodes a list of bytes. `journalctl -o json` writes a text with control characters as such a list: [27,91,51,...].
bool text_of_bytes(std::string_view list, std::string& text) {
  if (!list.starts_with('[') || !list.ends_with(']')) return false;
  text.clear();
  int value = -1;
  for (const char c : list.substr(1)) {
    if (is_digit(c)) {
      value = std::max(value, 0) * 10 + (c - '0');
      if (value > 255) return false;
    } else if (c == ',' || c == ']') {
      if (value < 0) return false;
      text += static_cast<char>(value);
      value = -1;
    } else if (c != ' ') {
      return false;
    }
  }
  return true;
}

// Reads one field of a CSV row from `at` on. Doubled quotes become one quote. `open` is set if the closing quote is
// missing, so that the field continues in the next line.
std::string csv_field(std::string_view row, std::size_t& at, bool& open) {
  std::string field;
  open = false;
  if (at < row.size() && row[at] == '"') {
    for (++at;; ++at) {
      if (at >= row.size()) {
        open = true;
        return field;
      }
      if (row[at] != '"') field += row[at];
      else if (at + 1 < row.size() && row[at + 1] == '"') field += row[at++];
      else break;
    }
    at = std::min(row.find(',', at), row.size());
  } else {
    const std::size_t end = std::min(row.find(',', at), row.size());
    field = row.substr(at, end - at);
    at = end;
  }
  if (at < row.size()) ++at;  // skip the comma
  return field;
}

std::vector<std::string> csv_row(std::string_view row, bool& open) {
  std::vector<std::string> fields;
  open = false;
  for (std::size_t at = 0; at < row.size() && fields.size() < 64 && !open;) fields.push_back(csv_field(row, at, open));
  return fields;
}

// True for a name that Kubernetes accepts for a pod or container.
bool is_pod_name(std::string_view word) {
  return !word.empty() && word.size() <= 120 && (is_alpha(word[0]) || is_digit(word[0])) &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '.'; });
}

// Reads a timestamp with a date and a zone, a blank, and the program's line, as `kubectl logs --timestamps` and `docker
// logs -t` print them.
bool read_timestamp(std::string_view line, LayerFields& out) {
  const auto time = read_time(line);
  if (!time || time->kind != TimeKind::date_time || !is_digit(line[0])) return false;
  std::string_view rest = line.substr(time->length);
  // In text that was copied from a web page, the blank and the zone may be missing: "3/7/2019 10:32:39 PM2019-03-07
  // 21:32:39,103 - ...".
  const std::string_view of_time = line.substr(0, time->length);
  const bool of_page = of_time.ends_with(" PM") || of_time.ends_with(" AM");
  if (!time->zoned && !of_page) return false;
  if (!rest.empty() && rest[0] != ' ') {
    if (!of_page) return false;
    out.time = time;
    out.text = rest;
    return true;
  }
  out.time = time;
  out.text = rest.substr(std::min<std::size_t>(1, rest.size()));
  return true;
}

// Reads "pod container line", as stern without colours and some versions of `kubectl logs --prefix` print it.
bool read_stern(std::string_view line, LayerFields& out) {
  const std::size_t first = line.find(' ');
  if (first == std::string_view::npos) return false;
  const std::size_t second = line.find(' ', first + 1);
  if (second == std::string_view::npos) return false;
  const std::string_view pod = line.substr(0, first), container = line.substr(first + 1, second - first - 1);
  if (!is_pod_name(pod) || !is_pod_name(container) || pod.find('-') == std::string_view::npos || is_number(container) ||
      read_time(line) || level_of(pod) != Level::none || level_of(container) != Level::none)
    return false;
  out.host = pod;
  out.text = line.substr(second + 1);
  return true;
}

// Reads "2024-06-05T12:00:00.123000+00:00 stream line", as `aws logs tail` prints it.
bool read_stream(std::string_view line, LayerFields& out) {
  LayerFields timed;
  if (!read_timestamp(line, timed)) return false;
  const std::size_t end = timed.text.find(' ');
  if (end == std::string_view::npos || end == 0 || end > 120) return false;
  const std::string_view name = timed.text.substr(0, end);
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) { return is_name_char(c) || c == '/'; });
  if (!is_name || level_of(name) != Level::none || is_number(name)) return false;
  out.time = timed.time;
  out.host = name;
  out.text = timed.text.substr(end + 1);
  return true;
}

// Reads a node's name or address, a separator, and a line that begins with a timestamp or is a JSON object: "[n1]
// 12:03:04 ...", "n1 - 12:03:04 ...", "/tmp/n1.log:..." (printed by grep), "10.0.0.1: {...}" (printed by a command for
// many hosts).
bool read_origin(std::string_view line, LayerFields& out) {
  std::string_view rest = line;
  const bool bracket = rest.starts_with('[');
  if (bracket) rest.remove_prefix(1);
  // The '-' may be what grep prints before context lines, or part of a name: "n1.log-12:03:04".
  std::size_t end = 0;
  while (end < rest.size() && end < kLongestOrigin && (is_name_char(rest[end]) || rest[end] == '/' || rest[end] == '@'))
    ++end;
  std::string_view name = rest.substr(0, end);
  for (const std::string_view ending : {".log-", ".txt-", ".out-"})
    if (const std::size_t at = name.find(ending); at != std::string_view::npos) {
      end = at + ending.size() - 1;
      name = name.substr(0, end);
    }
  rest.remove_prefix(end);
  bool of_file = false;
  for (const std::string_view ending : {".log", ".txt", ".out"})
    if (name.ends_with(ending)) {
      of_file = true;
      name.remove_suffix(ending.size());
    }
  name.remove_prefix(std::min(name.find_last_of("/@") + 1, name.size()));  // npos + 1 is 0: the whole name
  if (name.empty() || is_number(name) || rest.empty() || read_time(line)) return false;
  constexpr std::string_view kSigns = "]:-|>, \t";
  if (bracket && rest[0] != ']') return false;
  const std::size_t rest_begin = rest.find_first_not_of(kSigns);
  if (rest_begin == 0 || rest_begin == std::string_view::npos) return false;
  rest.remove_prefix(rest_begin);
  Parts parts;
  if (!of_file && !rest.starts_with('{') && !(read_header(rest, parts) && parts.time)) return false;
  out.host = name;
  out.text = rest;
  return true;
}

// Reads the prefix that grep, zgrep and rg print if they search several files: "/var/log/x/server.log:". A line number
// may follow it.
bool read_file_name(std::string_view line, LayerFields& out) {
  const std::size_t colon = line.substr(0, kLongestOrigin).find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, colon);
  if (name.find(' ') != std::string_view::npos || name.find('.') == std::string_view::npos ||
      (name.find('/') == std::string_view::npos && name.find(".log") == std::string_view::npos) || read_time(line))
    return false;
  std::string_view rest = line.substr(colon + 1);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits != 0 && rest.substr(digits).starts_with(':') && !read_time(rest)) rest.remove_prefix(digits + 1);
  Parts parts;
  if (!rest.starts_with('{') && !(read_header(rest, parts) && parts.time)) return false;
  out.text = rest;
  return true;
}

// Reads a line that is quoted in a mail or an issue: "> text".
bool read_quote(std::string_view line, LayerFields& out) {
  constexpr std::string_view kBar = "\xe2\x94\x82";  // a part of the frames that terminal programs draw
  if (line.starts_with(kBar)) {
    line.remove_prefix(kBar.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (line.ends_with(kBar)) line.remove_suffix(kBar.size());
    out.text = line.substr(0, line.find_last_not_of(' ') + 1);  // npos + 1 is 0
    return true;
  }
  if (line != ">" && !line.starts_with("> ")) return false;
  out.text = line.substr(std::min<std::size_t>(2, line.size()));
  return true;
}

}  // namespace

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

Level level_of_severity(int severity) {
  constexpr std::array kLevels = {Level::fatal,   Level::fatal,  Level::fatal, Level::error,
                                  Level::warning, Level::notice, Level::info,  Level::debug};
  return kLevels[static_cast<std::size_t>(std::clamp(severity, 0, 7))];
}

std::string nested_host(const std::vector<JsonMember>& members, Named named, int depth) {
  if (named == Named::anywhere)
    for (const std::string_view key : kHostNames)
      for (const JsonMember& member : members)
        if (member.key == key && member.text && !member.value.empty()) return std::string(member.value);
  if (depth <= 0) return {};
  for (const JsonMember& member : members) {
    if (!is_object(member) || !is_any(member.key, kOriginKeys)) continue;
    JsonLine inside;
    if (!inside.parse(member.value)) continue;
    if (member.key == "host" || member.key == "pod" || member.key == "container")  // as in {"host":{"name":"n1"}}
      if (const JsonMember* name = inside.find("name"); name != nullptr && name->text) return std::string(name->value);
    if (std::string host = nested_host(inside.members(), Named::anywhere, depth - 1); !host.empty()) return host;
  }
  return {};
}

bool Layer::read_journal_json(std::string_view line, LayerFields& out) {
  if (!line.starts_with('{') || line.find("__REALTIME_TIMESTAMP") == std::string_view::npos || !json_.parse(line))
    return false;
  const JsonMember* time = json_.find("__REALTIME_TIMESTAMP");
  const JsonMember* text = json_.find("MESSAGE");
  if (time == nullptr || text == nullptr) return false;
  out.time = journal_time(time->value);
  if (const JsonMember* host = json_.find("_HOSTNAME")) out.host = host->value;
  if (const JsonMember* name = json_.find("SYSLOG_IDENTIFIER")) out.logger = name->value;
  if (const JsonMember* level = json_.find("PRIORITY"); level != nullptr && is_number(level->value))
    out.level = level_of_severity(static_cast<int>(number_of(level->value)));
  if (text->text) out.text = text->value;
  else if (text_of_bytes(text->value, text_)) out.text = text_;
  out.whole = true;  // one entry of the journal is one message, including its continuation lines
  return true;
}

// Reads {"@timestamp":..., "kubernetes":{"pod_name":"n1-0"}, "log":"the program's line"}.
bool Layer::read_envelope(std::string_view line, LayerFields& out) {
  if (!line.starts_with('{') || !json_.parse(line)) return false;
  const JsonMember* text = nullptr;
  for (const std::string_view key : kWholeLineKeys)
    if (text == nullptr) text = json_.find(key);
  if (text == nullptr || !text->text) return false;
  for (const std::string_view key : kEnvelopeTimeKeys)
    if (const JsonMember* time = out.time ? nullptr : json_.find(key); time != nullptr)
      out.time = read_time(time->value);
  host_ = nested_host(json_.members());
  if (!out.time && host_.empty()) return false;
  for (const char* key : {"severity", "level"})
    if (const JsonMember* level = json_.find(key); level != nullptr && level->text) out.level = level_of(level->value);
  out.host = host_;
  out.text = text->value;
  while (!out.text.empty() && (out.text.back() == '\n' || out.text.back() == '\r')) out.text.remove_suffix(1);
  return true;
}

bool Layer::find_columns(std::string_view head) {
  // this is JSON, which also has quoted names separated by commas
  if (head.starts_with('{') || head.starts_with('[')) return false;
  bool open = false;
  const std::vector<std::string> names = csv_row(head, open);
  if (open || names.size() < 2) return false;
  constexpr std::array kTimes =
      std::to_array<std::string_view>({"@timestamp", "timestamp", "time", "date", "ts", "_time", "tsns"});
  constexpr std::array kTexts =
      std::to_array<std::string_view>({"line", "message", "log", "msg", "_raw", "text", "content", "@message"});
  constexpr std::array kLevels = std::to_array<std::string_view>({"level", "severity", "log.level", "detected_level"});
  constexpr std::array kOrigins = std::to_array<std::string_view>({"labels", "resource", "kubernetes", "source"});
  const auto column = [&](std::span<const std::string_view> wanted) -> std::optional<std::size_t> {
    for (const std::string_view name : wanted)
      for (std::size_t i = 0; i < names.size(); ++i)
        if (lower_case(names[i]) == name) return i;
    return std::nullopt;
  };
  time_column_ = column(kTimes);
  text_column_ = column(kTexts);
  level_column_ = column(kLevels);
  host_column_ = column(kHostNames);
  if (!host_column_) host_column_ = column(kOrigins);
  return time_column_ && text_column_;
}

// Guesses the columns of rows without a header. The time is the first column with a timestamp in every row; the level
// is the first one with a level in every row; the host is the first one with a node's name in every row. The longest of
// the other columns is the text.
bool Layer::derive_columns(std::span<const std::string> sample, const IsNode& is_node) {
  constexpr std::size_t kFewestColumns = 3;
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : sample) {
    if (line.empty()) continue;
    if (line[0] != '"') return false;  // exports without a header have quotes around the first field
    bool open = false;
    rows.push_back(csv_row(line, open));
    if (open || rows.back().size() < kFewestColumns || rows.back().size() != rows.front().size()) return false;
  }
  if (rows.empty()) return false;
  const auto all = [&](std::size_t column, const auto& fits) {
    return std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return fits(row[column]); });
  };
  const auto is_time = [](const std::string& field) {
    const auto time = read_time(field);
    return time && time->length == field.size();
  };
  time_column_ = level_column_ = host_column_ = text_column_ = std::nullopt;
  std::size_t longest = 0;
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    if (!time_column_ && all(column, is_time)) {
      time_column_ = column;
    } else if (!level_column_ && all(column, [](const auto& field) { return level_of(field) != Level::none; })) {
      level_column_ = column;
    } else if (!host_column_ && is_node && all(column, is_node)) {
      host_column_ = column;
    } else {
      std::size_t size = 0;
      for (const auto& row : rows) size += row[column].size();
      if (size > longest) text_column_ = column;
      longest = std::max(longest, size);
    }
  }
  return time_column_ && text_column_;
}

bool Layer::read_csv(std::string_view line, LayerFields& out) {
  if (!head_.empty() && line == head_) return out.nothing = true;
  text_.clear();
  if (in_quotes_) {  // the field continues up to the closing quote
    std::size_t at = 0;
    for (; at < line.size(); ++at) {
      if (line[at] != '"') text_ += line[at];
      else if (at + 1 < line.size() && line[at + 1] == '"') text_ += line[at++];
      else break;
    }
    in_quotes_ = at >= line.size();
    out.text = text_;
    out.rest = true;
    return true;
  }
  bool open = false;
  std::vector<std::string> fields = csv_row(line, open);
  if (fields.size() <= std::max(*time_column_, *text_column_)) return false;
  const auto time = read_time(fields[*time_column_]);
  if (!time) return false;
  in_quotes_ = open && fields.size() == *text_column_ + 1;
  out.time = time;
  out.time->length = 0;
  if (host_column_ && *host_column_ < fields.size()) {
    host_ = fields[*host_column_];
    if (host_.starts_with('{')) host_ = nested_.parse(host_) ? nested_host(nested_.members()) : std::string();
    out.host = host_;
  }
  if (level_column_ && *level_column_ < fields.size()) out.level = level_of(fields[*level_column_]);
  text_ = std::move(fields[*text_column_]);
  out.text = text_;
  return true;
}

bool Layer::read(std::string_view line, LayerFields& out) {
  switch (kind_) {
    case Kind::docker: return read_docker(line, json_, out);
    case Kind::cri: return read_cri(line, out);
    case Kind::syslog: return read_syslog(line, out);
    case Kind::syslog_5424: return read_syslog_5424(line, out);
    case Kind::journal_json: return read_journal_json(line, out);
    case Kind::envelope: return read_envelope(line, out);
    case Kind::csv: return read_csv(line, out);
    case Kind::quote: return read_quote(line, out);
    case Kind::prefix: return read_prefix(line, out);
    case Kind::stern: return read_stern(line, out);
    case Kind::stream: return read_stream(line, out);
    case Kind::origin: return read_origin(line, out);
    case Kind::file_name: return read_file_name(line, out);
    case Kind::timestamp: return read_timestamp(line, out);
    case Kind::indent:
      if (leading_blanks(line) < blanks_) return line.empty();
      out.text = line.substr(blanks_);
      return true;
  }
  return false;
}

bool Layer::take(std::string_view line, LayerFields& out) {
  if (!read(line, out)) return false;
  if (kind_ != Kind::syslog && kind_ != Kind::syslog_5424) return true;
  // Some programs indent every message (Scylla, corosync). Therefore a line continues the message before it only if it
  // has more blanks than the least indented message of its program.
  const std::size_t blanks = leading_blanks(out.text);
  if (blanks == out.text.size()) return true;
  // A file may name any number of programs, so the indentation is tracked only for this many.
  constexpr std::size_t kMostPrograms = 1024;
  auto known = indents_.find(std::string(out.logger));
  if (known == indents_.end()) {
    if (indents_.size() >= kMostPrograms) return true;
    known = indents_.emplace(std::string(out.logger), blanks).first;
  }
  std::size_t& usual = known->second;
  usual = std::min(usual, blanks);
  out.text.remove_prefix(usual);
  return true;
}

bool Layer::is_journal() const { return kind_ == Kind::syslog || kind_ == Kind::syslog_5424 || kind_ == Kind::cri; }

std::string_view Layer::name() const {
  switch (kind_) {
    case Kind::docker: return "docker's JSON";
    case Kind::cri: return "containerd's lines";
    case Kind::syslog: return "syslog (RFC 3164)";
    case Kind::syslog_5424: return "syslog (RFC 5424)";
    case Kind::journal_json: return "the journal as JSON";
    case Kind::envelope: return "a collector's JSON";
    case Kind::csv: return "CSV";
    case Kind::quote: return "quoted lines";
    case Kind::indent: return "indented lines";
    case Kind::prefix: return "lines with a service's name before them";
    case Kind::stern: return "lines with pod and container before them";
    case Kind::stream: return "lines with a time and a stream's name before them";
    case Kind::origin: return "lines with a node's name before them";
    case Kind::file_name: return "lines with a file's name before them";
    case Kind::timestamp: return "lines with a time before them";
  }
  return {};
}

// Seven of ten lines must have the layer. Other lines may be between them, because a tool added them or because they
// continue messages.
bool Layer::fits(std::span<const std::string> sample, const IsNode& is_node) {
  if (kind_ == Kind::origin && !is_node) return false;
  std::size_t fit = 0, lines = 0, further = 0;
  std::set<std::string> origins;
  if (kind_ == Kind::csv) {
    if (find_columns(sample.front())) head_ = sample.front();
    else if (!derive_columns(sample, is_node)) return false;
  }
  if (kind_ == Kind::indent) {
    std::size_t least = std::string::npos;
    for (const std::string& line : sample)
      if (!line.empty()) least = std::min(least, leading_blanks(line));
    if (least == std::string::npos || least == 0) return false;
    blanks_ = least;
    return true;
  }
  for (const std::string& line : sample) {
    if (line.empty()) continue;
    // In journalctl's text output, the further lines of a message are indented.
    if (blank_char(line[0])) continue;
    LayerFields out;
    const bool has_it = read(line, out) && (kind_ != Kind::origin || is_node(out.host));
    // Text pasted from a journal contains continuation lines without a timestamp. They do not count against the layer,
    // because a line looks like one of a journal only if it is one.
    if (!has_it && fit != 0 && (is_journal() || kind_ == Kind::origin)) {
      Parts parts;
      if (!read_header(line, parts)) continue;
    }
    ++lines;
    if (!has_it) continue;
    ++fit;
    if (kind_ == Kind::stern) origins.insert(std::string(line.substr(0, line.size() - out.text.size())));
    if (kind_ == Kind::stream) origins.emplace(out.host);
    // A program's own header may also begin with a timestamp. That a tool added the timestamp is certain only if the
    // text after it is a continuation, or has a timestamp of its own.
    if (kind_ == Kind::timestamp || kind_ == Kind::stern || kind_ == Kind::stream) {
      Parts parts;
      const bool header = read_header(out.text, parts);
      // "Error: ..." looks like a continuation, but may be a message.
      const bool rest = looks_like_rest(out.text) && !out.text.empty() && !names_exception(out.text);
      further += kind_ == Kind::timestamp ? rest || (header && parts.time)
                                          : header || out.text.starts_with('{') || looks_like_rest(out.text);
    }
  }
  if (lines == 0 || fit * 10 < lines * 7) return false;
  // A single line in which the names of columns occur is no table. It may be an object: "web | {"ts":1,"msg":"up"}".
  if (kind_ == Kind::csv && !head_.empty() && lines == 1) return false;
  if (kind_ == Kind::timestamp) return further != 0 && fit * 10 >= lines * 9;
  // Require repeated names: the first words of sentences differ from line to line, whereas the names of pods or streams
  // are repeated.
  if (kind_ == Kind::stern || kind_ == Kind::stream)
    return further * 10 >= fit * 7 && origins.size() * 2 <= std::max<std::size_t>(fit, 4);
  return true;
}

std::optional<Layer> Layer::choose(std::span<const std::string> sample, const IsNode& is_node) {
  for (const Kind kind : {Kind::docker, Kind::cri, Kind::syslog_5424, Kind::syslog, Kind::journal_json, Kind::csv,
                          Kind::envelope, Kind::quote, Kind::prefix, Kind::stern, Kind::stream, Kind::origin,
                          Kind::file_name, Kind::timestamp, Kind::indent}) {
    Layer layer(kind);
    if (!layer.fits(sample, is_node)) continue;
    layer.in_quotes_ = false;
    return layer;
  }
  return std::nullopt;
}

}  // namespace rose::logs
