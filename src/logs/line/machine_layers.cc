#include "logs/line/machine_layers.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/ascii.h"
#include "logs/line/chars.h"

namespace rose::logs {
namespace {

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

std::optional<TimeStamp> journal_time(std::string_view microseconds) {
  const std::int64_t us = is_number(microseconds) ? number_of(microseconds) : -1;
  if (us <= 0 || us > std::int64_t{4'200'000'000} * 1'000'000) return std::nullopt;
  TimeStamp stamp;
  stamp.ns = us * 1000;
  stamp.zoned = true;
  stamp.length = microseconds.size();
  return stamp;
}

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

}  // namespace

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

bool read_journal_json(std::string_view line, JsonLine& json, std::string& text_buffer, LayerFields& out) {
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
  if (text->text) out.text = text->value;
  else if (text_of_bytes(text->value, text_buffer)) out.text = text_buffer;
  out.whole = true;  // one entry of the journal is one message, including its continuation lines
  return true;
}

}  // namespace rose::logs
