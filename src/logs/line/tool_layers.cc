#include "logs/line/tool_layers.h"

#include <algorithm>

#include "base/ascii.h"
#include "logs/line/chars.h"
#include "logs/line/header.h"

namespace rose::logs {
namespace {

constexpr std::size_t kLongestOrigin = 200;  // characters of a node's name, including the folders of its file

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
  // If the timestamp is in a usual format, also with a level after it ("2026-01-28 15:58:55.123 I | store: text"), the
  // program itself wrote it, unless another timestamp follows in the line.
  const auto own = read_time(shown);
  const bool whole =
      own && (own->length == shown.size() || level_of(trimmed(shown.substr(own->length))) != Level::none);
  Parts parts;
  return !whole || (read_header(out.text, parts) && parts.time);
}

// True for a name that Kubernetes accepts for a pod or container.
bool is_pod_name(std::string_view word) {
  return !word.empty() && word.size() <= 120 && (is_alpha(word[0]) || is_digit(word[0])) &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '.'; });
}

}  // namespace

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

bool read_origin(std::string_view line, LayerFields& out) {
  std::string_view rest = line;
  const bool bracket = rest.starts_with('[');
  if (bracket) rest.remove_prefix(1);
  // A '-' may be part of the name, or the sign that grep prints after the file's name in context lines:
  // "n1.log-12:03:04".
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

}  // namespace rose::logs
