// Regular expressions of users: RE2's, as ECMAScript without back references and looking around. A hostile line or
// pattern costs time in proportion to its length, and no stack.
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

// What a message says about the accepted form.
inline constexpr std::string_view kRegexForm = "as in ECMAScript, without back references and looking around (RE2)";

class Regex {
 public:
  explicit Regex(std::string_view pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Why it can't be used; "" when it can.
  [[nodiscard]] std::string problem() const;
  // Anywhere in the text; safe from several threads. False when it can't be used.
  [[nodiscard]] bool found_in(std::string_view text) const;
  // Named groups, (?P<name>...), with the place that find() gives them.
  [[nodiscard]] std::map<std::string, int> groups() const;
  // The first match anywhere in the text: the whole of it into groups[0], its nth group into groups[n] (without data
  // where the group took no part). False: there is none, or it can't be used.
  [[nodiscard]] bool find(std::string_view text, std::span<std::string_view> groups) const;

  static constexpr std::size_t kMostGroups = 16;  // that find() gives

 private:
  std::unique_ptr<re2::RE2> compiled_;  // null: too long
  std::size_t size_ = 0;
};

}  // namespace rose
