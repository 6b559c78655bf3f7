// TOML files as plain values that remember where they stood, and a reader that turns them into
// structs: each mistake is reported with file, line and column, the value quoted and the accepted
// ones named. Knows no key of any file; config and schedule do.
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

// Larger files are refused: nobody writes them, and memory should be bounded.
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
  Place place;  // of the key; the value has its own
  Value value;
};

// The root table. `file` stands in messages.
[[nodiscard]] Result<Value> parse(std::string_view text, std::string_view file);

// As a message shows it: "'netns'", "'5'", "an array". Long strings are cut, control characters escaped.
[[nodiscard]] std::string quoted(const Value& value);
[[nodiscard]] std::string quoted(std::string_view text);
// As a file shows it: "\"a\\tb\"". A byte that is not UTF-8, which TOML cannot hold, becomes '?': in a glob
// (paths come from the kernel and may hold any byte) that still matches it.
[[nodiscard]] std::string literal(std::string_view text);

// Collects the mistakes of one file and keeps the one to report: the first in the file; what is
// missing counts only when nothing that is there is wrong (a misspelt key explains a missing one).
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

// Reads one table. Asking for a key makes it a known one; finish() complains about the others.
// Getters return false, and leave the target alone, when the key is absent or its value is wrong
// (which is then in Problems).
class Table {
 public:
  Table(const Value& value, std::string path, Problems& problems)
      : value_(&value), path_(std::move(path)), problems_(&problems) {}

  [[nodiscard]] bool has(std::string_view key) const { return value_->find(key) != nullptr; }
  [[nodiscard]] Place place() const { return value_->place; }
  // Of the key's value; of the table when it is absent.
  [[nodiscard]] Place place(std::string_view key) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(std::string_view key) const;
  [[nodiscard]] Problems& problems() { return *problems_; }

  // Any type; nullptr when absent.
  const Value* get(std::string_view key);
  // Of one type; nullptr when absent or wrong. `what` describes what is wanted: "a string".
  const Value* get(std::string_view key, Type type, std::string_view what);

  bool string(std::string_view key, std::string& into);  // not empty, no NUL
  bool string(std::string_view key, std::optional<std::string>& into);
  bool boolean(std::string_view key, bool& into);
  template <std::integral T>
  bool integer(std::string_view key, T& into, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    if (!read_integer(key, value, least, most)) return false;
    into = static_cast<T>(value);
    return true;
  }
  // More than `above`, at most `most`.
  bool real(std::string_view key, double& into, double above, double most);
  bool duration(std::string_view key, std::int64_t& ns, std::int64_t least_ns, std::int64_t most_ns);
  bool size(std::string_view key, std::uint64_t& bytes, std::uint64_t least, std::uint64_t most);
  // Not empty, nor any of its strings.
  bool strings(std::string_view key, std::vector<std::string>& into);
  // A list of strings whose first names a program; later ones may be empty.
  bool command(std::string_view key, std::vector<std::string>& into);
  // `index` of the choice.
  bool one_of(std::string_view key, const std::vector<std::string>& choices, std::size_t& index);
  std::optional<Table> table(std::string_view key);
  // The tables of an array of tables ([[key]], or inline ones in a list); `what` as in get().
  std::vector<Table> tables(std::string_view key, std::string_view what);

  // "<path>.<key>: <what>" at the key's value.
  void wrong(std::string_view key, std::string_view what, std::string hint = {});
  // "<path>: '<key>' is missing" at the table.
  void require(std::string_view key, std::string hint = {});
  void finish();

 private:
  bool read_integer(std::string_view key, std::int64_t& into, std::int64_t least, std::int64_t most);
  // The strings of an array, which messages call a `list`; nothing when it is absent or wrong.
  std::optional<std::vector<std::string>> texts(std::string_view key, std::string_view what, std::string_view list,
                                                bool empty_ones);

  const Value* value_;
  std::string path_;
  Problems* problems_;
  std::vector<std::string> known_;
};

}  // namespace rose::toml
