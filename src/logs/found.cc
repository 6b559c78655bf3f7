#include "logs/found.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "kernel/syscalls.h"

namespace rose::logs {
namespace {

// The first whole word that is a name with this prefix, such as "ENOSPC" or "SIGKILL". Its number is in `error`, or 0
// if there is no such word.
template <typename Find>
Found named(std::string_view text, std::string_view prefix, const Find& find) {
  for (std::size_t at = text.find(prefix); at != std::string_view::npos; at = text.find(prefix, at + 1)) {
    if (at != 0 && word_char(text[at - 1])) continue;
    std::size_t end = at;
    while (end < text.size() && ((text[end] >= 'A' && text[end] <= 'Z') || is_digit(text[end]))) ++end;
    if (end - at < 3 || end - at > 16 || (end < text.size() && word_char(text[end]))) continue;
    if (const std::optional<int> number = find(text.substr(at, end - at)); number && *number > 0)
      return {*number, at, end - at};
  }
  return {};
}

}  // namespace

bool word_char(char c) { return is_digit(c) || is_alpha(c) || c == '_'; }

bool Found::is_disk_full() const { return error == ENOSPC || error == EDQUOT; }

int number_at(std::string_view text, std::size_t at) {
  int number = -1;
  for (; at < text.size() && is_digit(text[at]) && number < 10'000; ++at)
    number = (number < 0 ? 0 : number * 10) + (text[at] - '0');
  return number;
}

int number_after(std::string_view low, std::string_view words, std::size_t* place) {
  for (std::size_t at = low.find(words); at != std::string_view::npos; at = low.find(words, at + 1)) {
    std::size_t from = at + words.size();
    while (from < low.size() && std::string_view(" :=('\"").find(low[from]) != std::string_view::npos) ++from;
    if (const int number = number_at(low, from); number >= 0) {
      if (place != nullptr) *place = at;
      return number;
    }
  }
  return -1;
}

Found error_name(std::string_view text) {
  const Found name = named(text, "E", [](std::string_view name_of) {
    return is_digit(name_of[1]) ? std::nullopt : kernel::errno_number(name_of);
  });
  return name.error < kErrnoEnd ? name : Found();
}

int signal_name(std::string_view text) {
  return named(text, "SIG", [](std::string_view name) { return kernel::signal_number(name); }).error;
}

int signal_words(std::string_view low) {
  constexpr std::array kTexts = std::to_array<std::pair<std::string_view, int>>({
      {"killed", SIGKILL},
      {"segmentation fault", SIGSEGV},
      {"aborted", SIGABRT},
      {"bus error", SIGBUS},
      {"illegal instruction", SIGILL},
      {"floating point exception", SIGFPE},
      {"terminated", SIGTERM},
  });
  constexpr std::string_view kSignal = "signal";
  for (std::size_t at = low.find(kSignal); at != std::string_view::npos; at = low.find(kSignal, at + 1)) {
    std::string_view after = low.substr(at + kSignal.size());
    after.remove_prefix(std::min(after.find_first_not_of(" :=('\"["), after.size()));
    for (const auto& [text, number] : kTexts)
      if (after.starts_with(text)) return number;
    std::string_view before = low.substr(0, at);
    while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
    before.remove_prefix(std::min(before.find_last_of(' ') + 1, before.size()));
    for (const std::string_view name : {before, after.substr(0, after.find_first_not_of("abcdefghijklmnopqrstuvwxyz"))})
      if (name.size() > 2 && name.size() < 8)
        if (const std::optional<int> number = kernel::signal_number("SIG" + upper_case(name))) return *number;
  }
  return 0;
}

Found error_atom(std::string_view low) {
  for (std::size_t at = low.find('e'); at != std::string_view::npos; at = low.find('e', at + 1)) {
    if (at == 0 || std::string_view("{,(['\"").find(low[at - 1]) == std::string_view::npos) continue;
    std::size_t end = at;
    while (end < low.size() && word_char(low[end])) ++end;
    if (end == low.size() || end - at < 3 || end - at > 16 ||
        std::string_view("},)]'\"").find(low[end]) == std::string_view::npos)
      continue;
    const std::string name = upper_case(low.substr(at, end - at));
    if (const std::optional<int> error = kernel::errno_number(name);
        error && *error > 0 && *error < kErrnoEnd && !is_digit(name[1]))
      return {*error, at, end - at};
  }
  return {};
}

Found error_in_brackets(std::string_view low, std::size_t from) {
  for (std::size_t at = low.find('(', from); at != std::string_view::npos; at = low.find('(', at + 1)) {
    const int number = number_at(low, at + 1);
    const std::size_t end = at + 1 + (number < 10 ? 1 : number < 100 ? 2 : 3);
    if (number > 0 && number < kErrnoEnd && at > 0 && low[at - 1] == ' ' && end < low.size() && low[end] == ')')
      return {number, at, end + 1 - at};
  }
  return {};
}

Found error_at_end(std::string_view low) {
  const std::size_t first = low.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  const int number = number_at(low, first);
  if (number <= 0 || number >= kErrnoEnd) return {};
  for (const std::string_view words : {", error ", ", error: ", ", error code ", ", error code: "})
    if (low.substr(0, first).ends_with(words)) return {number, first, low.size() - first};
  return {};
}

}  // namespace rose::logs
