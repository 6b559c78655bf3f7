// fmt::join of strings, compiled once. With fmt's own formatter, every file that joins strings would compile fmt's
// formatting of strings again, which was a tenth of the code of such a file.
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

namespace rose {

template <typename Iterator>
struct JoinedTexts {
  using View = fmt::join_view<Iterator, Iterator, char>;
  static constexpr fmt::format_parse_context::iterator parse(fmt::format_parse_context& context) {
    return context.begin();  // only "{}" is accepted
  }
  static fmt::format_context::iterator format(const View& view, fmt::format_context& context);
};
extern template struct JoinedTexts<std::vector<std::string>::iterator>;
extern template struct JoinedTexts<std::vector<std::string>::const_iterator>;
extern template struct JoinedTexts<std::set<std::string>::const_iterator>;

}  // namespace rose

template <>
struct fmt::formatter<rose::JoinedTexts<std::vector<std::string>::iterator>::View>
    : rose::JoinedTexts<std::vector<std::string>::iterator> {};
template <>
struct fmt::formatter<rose::JoinedTexts<std::vector<std::string>::const_iterator>::View>
    : rose::JoinedTexts<std::vector<std::string>::const_iterator> {};
template <>
struct fmt::formatter<rose::JoinedTexts<std::set<std::string>::const_iterator>::View>
    : rose::JoinedTexts<std::set<std::string>::const_iterator> {};
