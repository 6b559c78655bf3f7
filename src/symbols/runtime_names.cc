#include "symbols/runtime_names.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace rose::symbols {
namespace {

constexpr std::size_t kMostOfAList = std::size_t{256} << 20;
constexpr std::size_t kMostOfALine = 4096;

// V8's tags for code that was compiled from JavaScript. Other tags (Builtin, BytecodeHandler, Stub) mark V8's own code.
constexpr std::array<std::string_view, 6> kScriptKinds = {"JS",     "Function", "LazyCompile",
                                                          "Script", "Eval",     "Callback"};

bool take_hexadecimal(std::string_view& line, std::uint64_t& number) {
  if (line.starts_with("0x")) line.remove_prefix(2);
  const auto read = std::from_chars(line.data(), line.data() + line.size(), number, 16);
  if (read.ec != std::errc() || read.ptr == line.data() + line.size() || *read.ptr != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()) + 1);
  return true;
}

// Removes a number such as ":12" from the end of `text`.
bool take_number_behind(std::string_view& text, int& number) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return false;
  const auto digits = text.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || number < 0) return false;
  text.remove_suffix(digits.size() + 1);
  return true;
}

RuntimeName of_script(std::string_view text) {
  if (!text.empty() && std::string_view("~*^+").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);  // skip the optimisation level
  RuntimeName name;
  const auto space = text.find(' ');
  name.function = std::string(text.substr(0, space));
  if (name.function.empty()) name.function = "(anonymous)";
  if (space == std::string_view::npos) return name;
  auto where = text.substr(space + 1);
  int column = 0;
  if (take_number_behind(where, column) && !take_number_behind(where, name.line)) name.line = column;
  if (where.starts_with("file://")) where.remove_prefix(7);
  name.file = std::string(where);
  return name;
}

}  // namespace

RuntimeName parse_runtime_name(std::string_view text) {
  if (text.starts_with("py::")) {
    text.remove_prefix(4);
    const auto colon = text.find(':');
    return {std::string(text.substr(0, colon)),
            colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1)), 0};
  }
  const auto colon = text.find(':');
  if (colon != std::string_view::npos &&
      std::find(kScriptKinds.begin(), kScriptKinds.end(), text.substr(0, colon)) != kScriptKinds.end())
    return of_script(text.substr(colon + 1));
  return {std::string(text), {}, 0};
}

std::map<std::uint64_t, RuntimeName> runtime_names(const std::filesystem::path& list,
                                                   std::vector<std::uint64_t> addresses) {
  std::map<std::uint64_t, std::string> found;
  std::sort(addresses.begin(), addresses.end());
  // Every user can write to the folder that contains the list. Therefore the list must be a regular file, and links are
  // not followed.
  const Fd fd = open_regular_at(AT_FDCWD, list, O_NOFOLLOW);
  if (!fd) return {};

  const auto take = [&](std::string_view line) {
    std::uint64_t start = 0, size = 0;
    if (line.size() > kMostOfALine || !take_hexadecimal(line, start) || !take_hexadecimal(line, size) || line.empty())
      return;
    for (auto at = std::lower_bound(addresses.begin(), addresses.end(), start);
         at != addresses.end() && *at - start < size; ++at)
      found[*at] = std::string(line);
  };
  std::string left;  // the incomplete line at the end of the previous block
  std::array<char, 65'536> piece;
  for (std::size_t bytes = 0; bytes < kMostOfAList;) {
    const auto got = ::read(fd.get(), piece.data(), piece.size());
    if (got <= 0) break;
    bytes += static_cast<std::size_t>(got);
    std::string_view text(piece.data(), static_cast<std::size_t>(got));
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      if (left.empty()) take(text.substr(0, end));
      else if (left.size() <= kMostOfALine) take(left.append(text.substr(0, end)));
      left.clear();
      text.remove_prefix(end + 1);
    }
    if (left.size() <= kMostOfALine) left += text;
  }
  // If the last line has no newline, it is incomplete and is ignored.
  std::map<std::uint64_t, RuntimeName> names;
  for (const auto& [address, name] : found) names.emplace(address, parse_runtime_name(printable(name)));
  return names;
}

}  // namespace rose::symbols
