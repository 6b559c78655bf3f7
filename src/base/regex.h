// Regular expressions supplied by users: RE2, which accepts ECMAScript syntax without back references and lookaround.
// Matching time is linear in the input and needs no stack, so hostile patterns and lines are harmless.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace rose {

// How error messages describe the accepted syntax.
inline constexpr std::string_view kRegexForm = "ECMAScript syntax without back references and lookaround (RE2)";

class Regex {
 public:
  explicit Regex(std::string_view pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Why the expression cannot be used, or "" if it can.
  [[nodiscard]] std::string problem() const;
  // True if the expression matches anywhere in the text, false if it does not or cannot be used. Safe from several
  // threads.
  [[nodiscard]] bool found_in(std::string_view text) const;
  // Named groups, (?P<name>...), with their index in the result of find().
  [[nodiscard]] std::map<std::string, int> groups() const;
  // Finds the first match anywhere in the text. groups[0] receives the whole match and groups[n] the nth group. The
  // data pointer of a group that took no part in the match is null. Returns false if there is no match or the
  // expression cannot be used.
  [[nodiscard]] bool find(std::string_view text, std::span<std::string_view> groups) const;

  static constexpr std::size_t kMostGroups = 16;  // the most entries that find() fills, the whole match included

 private:
  std::unique_ptr<re2::RE2> compiled_;  // null if the expression is too long
  std::size_t size_ = 0;
};

}  // namespace rose
