// YAML as a tree that remembers line numbers. yaml-cpp parses the text. This code limits the size, the depth and the
// number of values that aliases expand to, so that a few lines cannot expand to billions of values. Merge keys ("<<")
// are applied.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose {

inline constexpr std::size_t kMostYamlBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostYamlValues = 100'000;
inline constexpr std::size_t kMostYamlDepth = 64;

struct Yaml {
  struct Member;
  enum class Kind { null, scalar, list, map };
  enum class Tag { none, reset, override };  // "!reset" and "!override" of Compose; other tags are not kept
  Kind kind = Kind::null;
  Tag tag = Tag::none;
  bool plain = false;  // a scalar without quotes or a tag, whose text determines its type
  int line = 0;
  int file = 0;                 // index of the file, if the caller combines trees of several files
  std::string text;             // scalar
  std::vector<Yaml> items;      // list
  std::vector<Member> members;  // map, in file order; keys are unique

  [[nodiscard]] const Yaml* find(std::string_view key) const;
  // The scalar's text, or "" if the key is absent or has another kind of value.
  [[nodiscard]] std::string scalar(std::string_view key) const;
  [[nodiscard]] bool is_map() const { return kind == Kind::map; }
  [[nodiscard]] bool is_list() const { return kind == Kind::list; }
  [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
};

struct Yaml::Member {
  std::string key;
  Yaml value;
};

// Parses a text with one document; a second one is refused. Errors are ErrorKind::input with "file:line:column: ...".
[[nodiscard]] Result<Yaml> parse_yaml(std::string_view text, std::string_view file);
// All documents that are not empty.
[[nodiscard]] Result<std::vector<Yaml>> parse_yaml_documents(std::string_view text, std::string_view file);

}  // namespace rose
