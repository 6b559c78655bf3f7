// Parses TOML into values that remember their position, and reads them into structs. Each mistake is reported with
// file, line and column, the quoted value and the accepted values. Knows no keys: config and schedule define them.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::toml {

// Larger files are refused to bound memory; no person writes files of this size.
inline constexpr std::size_t kMostBytes = std::size_t{16} << 20;

struct Place {
  int line = 0;
  int column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

enum class Type { string, integer, real, boolean, date, array, table };

struct Member;

struct Value {
  Type type = Type::table;
  Place place;
  std::string text;  // string
  std::int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<Value> items;     // array
  std::vector<Member> members;  // table, in file order

  [[nodiscard]] const Member* find(std::string_view key) const;
};

struct Member {
  std::string key;
  Place place;  // position of the key; the value has its own
  Value value;
};

// Returns the root table. `file` is the name for error messages.
[[nodiscard]] Result<Value> parse(std::string_view text, std::string_view file);

// The value as shown in messages: "'netns'", "'5'", "an array". Long strings are cut, control characters escaped.
[[nodiscard]] std::string quoted(const Value& value);
[[nodiscard]] std::string quoted(std::string_view text);
// The value as written in a TOML file: "\"a\\tb\"". TOML cannot hold bytes that are not UTF-8. They become '?', which
// still matches them when the value is used as a glob (paths from the kernel may contain any byte).
[[nodiscard]] std::string literal(std::string_view text);

// Collects the mistakes in one file and keeps the one to report: the first in the file. A missing key is reported only
// if nothing else is wrong, because a misspelt key is the likely reason for a missing one.
class Problems {
 public:
  explicit Problems(std::string_view file) : file_(file) {}

  void add(Place place, std::string_view what, std::string hint = {});
  void add_missing(Place place, std::string_view what, std::string hint = {});
  [[nodiscard]] bool any() const { return wrong_.has_value() || missing_.has_value(); }
  [[nodiscard]] Result<void> result() const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  struct Problem {
    Place place;
    Error error;
  };
  [[nodiscard]] Problem make(Place place, std::string_view what, std::string hint) const;

  std::string file_;
  std::optional<Problem> wrong_;
  std::optional<Problem> missing_;
};

// Reads one table. Each key that is asked for becomes a known key; finish() reports unknown ones. If the key is absent
// or its value is wrong (the mistake is then in Problems), a getter returns false and leaves the target unchanged.
class Table {
 public:
  Table(const Value& value, std::string path, Problems& problems)
      : value_(&value), path_(std::move(path)), problems_(&problems) {}

  [[nodiscard]] bool has(std::string_view key) const { return value_->find(key) != nullptr; }
  [[nodiscard]] Place place() const { return value_->place; }
  // The position of the key's value, or of the table if the key is absent.
  [[nodiscard]] Place place(std::string_view key) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(std::string_view key) const;
  [[nodiscard]] Problems& problems() { return *problems_; }

  // The value of the key, of any type; nullptr if the key is absent.
  const Value* get(std::string_view key);
  // The value of the key if it has this type; nullptr if it is absent or has another type. `what` describes the
  // expected type in messages: "a string".
  const Value* get(std::string_view key, Type type, std::string_view what);

  bool string(std::string_view key, std::string& into);  // refuses the empty string and NUL
  bool string(std::string_view key, std::optional<std::string>& into);
  bool boolean(std::string_view key, bool& into);
  template <std::integral T>
  bool integer(std::string_view key, T& into, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    if (!read_integer(key, value, least, most)) return false;
    into = static_cast<T>(value);
    return true;
  }
  // Accepts numbers greater than `above` and at most `most`.
  bool real(std::string_view key, double& into, double above, double most);
  bool duration(std::string_view key, std::int64_t& ns, std::int64_t least_ns, std::int64_t most_ns);
  bool size(std::string_view key, std::uint64_t& bytes, std::uint64_t least, std::uint64_t most);
  // Refuses an empty list and lists that contain an empty string.
  bool strings(std::string_view key, std::vector<std::string>& into);
  // A command line: a list of strings of which the first names a program and must not be empty. Arguments may be empty.
  bool command(std::string_view key, std::vector<std::string>& into);
  // Sets `index` to the position in `choices`.
  bool one_of(std::string_view key, const std::vector<std::string>& choices, std::size_t& index);
  std::optional<Table> table(std::string_view key);
  // The tables of an array of tables ([[key]] or inline tables in a list); `what` as in get().
  std::vector<Table> tables(std::string_view key, std::string_view what);

  // Reports "<path>.<key>: <what>" at the key's value.
  void wrong(std::string_view key, std::string_view what, std::string hint = {});
  // Reports "<path>: '<key>' is missing" at the table if the key is absent.
  void require(std::string_view key, std::string hint = {});
  void finish();

 private:
  bool read_integer(std::string_view key, std::int64_t& into, std::int64_t least, std::int64_t most);
  // The strings of an array; nothing if it is absent or wrong. Messages call it `list`.
  std::optional<std::vector<std::string>> texts(std::string_view key, std::string_view what, std::string_view list,
                                                bool empty_ones);

  const Value* value_;
  std::string path_;
  Problems* problems_;
  std::vector<std::string> known_;
};

}  // namespace rose::toml
