#include "logs/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "logs/line/continuation.h"
#include "logs/meaning.h"

namespace rose::logs {
namespace {

constexpr std::size_t kQuoted = 140;        // characters of a message that are quoted
constexpr std::size_t kSearchedLines = 30;  // at most this many lines of a message are searched for the error

// Truncates the text, without splitting a UTF-8 character.
std::string cut_to(std::string_view text, std::size_t most) {
  std::string cut(text.substr(0, most));
  if (cut.size() == text.size()) return cut;
  while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xc0) == 0x80) cut.pop_back();
  if (!cut.empty() && static_cast<unsigned char>(cut.back()) >= 0xc0) cut.pop_back();
  return cut + "...";
}

std::string_view exception_of(const std::vector<std::string_view>& lines) {
  const auto last =
      std::find_if(lines.rbegin(), lines.rend(), [](std::string_view line) { return names_exception(line); });
  return last != lines.rend() ? *last : lines.back();
}

// The lines that state what happened, to be quoted. For a Python traceback, this is the exception at its end. Otherwise
// it is the first line. A second line is quoted if it names an error or an exception, or if the first line ends with a
// colon.
std::string quoted(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    at = end + 1;
  }
  if (lines.empty()) return {};
  if (lines.size() == 1) return cut_to(lines[0], kQuoted);
  const bool python = lines[0].starts_with("Traceback (most recent call last)");
  if (python) return cut_to(exception_of(lines), kQuoted);
  for (std::size_t i = 1; i < lines.size(); ++i)
    if (lines[i].starts_with("Traceback (most recent call last)"))
      return cut_to(lines[0], kQuoted) + " / " + cut_to(exception_of(lines), kQuoted);
  // A line without a timestamp ("open /x: permission denied", printed before the program ends) was appended to the
  // message before it, so quote this line, too.
  if (read_meaning(lines[0]).error == 0)
    for (std::size_t i = 1; i < std::min(lines.size(), kSearchedLines); ++i)
      if (!lines[i].starts_with("at ") && read_meaning(lines[i]).error != 0)
        return cut_to(lines[0], kQuoted) + " / " + cut_to(lines[i], kQuoted);
  if (lines[0].ends_with(':') || names_exception(lines[1]))
    return cut_to(lines[0], kQuoted) + " / " + cut_to(lines[1], kQuoted);
  return cut_to(lines[0], kQuoted);
}

}  // namespace

std::string quote(const Logs& logs, std::size_t node, const Message& message) {
  const std::string& name = logs.nodes[node].node;
  return fmt::format("{}:{}{}: '{}'", logs.sources[message.source].path.filename().string(), message.line,
                     name.empty() ? "" : " of " + name, quoted(logs.text(message)));
}

}  // namespace rose::logs
