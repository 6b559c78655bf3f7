// YAML as a tree that remembers its lines. yaml-cpp reads; this bounds what it reads: size, depth, and the values that
// aliases stand for, so that a few lines which expand to billions are refused. Merge keys ("<<") are carried out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace rose {

inline constexpr std::size_t kMostYamlBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostYamlValues = 100'000;
inline constexpr std::size_t kMostYamlDepth = 64;

struct Yaml {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  int line = 0;
  int file = 0;             // the reader's own count, where trees of several files are put together
  std::string text;         // scalar
  std::vector<Yaml> items;  // list
  std::vector<std::pair<std::string, Yaml>> members;  // map, in the file's order; keys are unique

  [[nodiscard]] const Yaml* find(std::string_view key) const;
  // The scalar's text; "" for anything else or nothing.
  [[nodiscard]] std::string scalar(std::string_view key) const;
  [[nodiscard]] bool is_map() const { return kind == Kind::map; }
  [[nodiscard]] bool is_list() const { return kind == Kind::list; }
  [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
};

// The first document. ErrorKind::input with "file:line:column: ...".
[[nodiscard]] Result<Yaml> parse_yaml(std::string_view text, std::string_view file);

}  // namespace rose
