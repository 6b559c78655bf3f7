#include "base/regex.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

namespace rose {
namespace {

constexpr std::size_t kMostPatternBytes = 1000;

}  // namespace

Regex::Regex(std::string_view pattern) : size_(pattern.size()) {
  if (size_ > kMostPatternBytes) return;
  re2::RE2::Options options;
  options.set_log_errors(false);
  compiled_ = std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

std::string Regex::problem() const {
  if (!compiled_) return fmt::format("it has {} characters, up to {} are accepted", size_, kMostPatternBytes);
  switch (compiled_->error_code()) {
    case re2::RE2::NoError: return {};
    case re2::RE2::ErrorMissingBracket: return "a '[' is not closed";
    case re2::RE2::ErrorMissingParen:
    case re2::RE2::ErrorUnexpectedParen: return "a '(' is not closed or a ')' not opened";
    case re2::RE2::ErrorTrailingBackslash: return "it ends with a '\\'";
    case re2::RE2::ErrorRepeatArgument:
    case re2::RE2::ErrorRepeatOp: return "a '*', '+', '?' or '{' repeats nothing";
    case re2::RE2::ErrorRepeatSize: return "bad numbers in '{}'";
    case re2::RE2::ErrorBadEscape:
      return fmt::format("a bad '\\' escape, or a back reference, which is not supported: '{}'",
                         compiled_->error_arg());
    case re2::RE2::ErrorBadCharClass: return fmt::format("an unknown character class: '{}'", compiled_->error_arg());
    case re2::RE2::ErrorBadCharRange: return "a bad range in '[]'";
    case re2::RE2::ErrorBadPerlOp: return fmt::format("'{}' is not supported", compiled_->error_arg());
    case re2::RE2::ErrorPatternTooLarge: return "it is too complex";
    default: return compiled_->error();
  }
}

bool Regex::found_in(std::string_view text) const {
  return compiled_ && compiled_->ok() && re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

std::map<std::string, int> Regex::groups() const {
  return compiled_ && compiled_->ok() ? compiled_->NamedCapturingGroups() : std::map<std::string, int>();
}

bool Regex::find(std::string_view text, std::span<std::string_view> groups) const {
  if (!compiled_ || !compiled_->ok()) return false;
  std::array<re2::StringPiece, kMostGroups> found;
  const std::size_t count =
      std::min({groups.size(), found.size(), static_cast<std::size_t>(compiled_->NumberOfCapturingGroups()) + 1});
  if (!compiled_->Match({text.data(), text.size()}, 0, text.size(), re2::RE2::UNANCHORED, found.data(),
                        static_cast<int>(count)))
    return false;
  std::fill(groups.begin(), groups.end(), std::string_view());
  for (std::size_t i = 0; i < count; ++i)
    if (found[i].data() != nullptr) groups[i] = {found[i].data(), found[i].size()};
  return true;
}

}  // namespace rose
