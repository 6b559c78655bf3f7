// Interprets DWARF types: how to find members, and how to read and format a value of a type. Private to symbols.
#pragma once

#include <elfutils/libdw.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/dwarf_location.h"
#include "symbols/values.h"

namespace rose::symbols {

// The type of a DIE, without typedefs and qualifiers. Nothing for void, and if the debug information is damaged.
[[nodiscard]] std::optional<Dwarf_Die> type_of(Dwarf_Die* die);
[[nodiscard]] std::string type_name(Dwarf_Die* die);   // the name of the type of a DIE: "const char *", "Shade"
[[nodiscard]] std::uint64_t size_of(Dwarf_Die* type);  // 0: unknown

// Where a returned C or C++ value is stored: in rax, in rax and rdx, or in the memory to which rax points. `rust`: the
// value is returned by Rust's calling convention.
[[nodiscard]] Stand returned_stand(Dwarf_Die* type, bool rust);

// The parts of an argument that are simple enough to be recorded although nobody requested them, each as a query writes
// it after the argument's name: "" for the argument itself, "->term" for a member. Empty if there are none.
[[nodiscard]] std::vector<std::string> simple_members(Dwarf_Die* typed);

// True if a Go variable has the type `error`.
[[nodiscard]] bool is_go_error(Dwarf_Die* typed);
// How many integer registers a Go value takes. Nothing if it contains an array, because it is then on the stack.
[[nodiscard]] std::optional<std::size_t> go_words(Dwarf_Die* typed);

struct Reading {
  Fetch fetch;
  Form form;
  std::string refused;  // why the value cannot be read; "" if it can
};
// Follows `members`, starting at an object with the type `typed` and the location `stand`. Fails with ErrorKind::input
// if a member does not exist, or if the result is a structure, so that the query must name a member of it.
[[nodiscard]] Result<Reading> read_down(Dwarf_Die* typed, Stand stand, const std::vector<std::string>& members,
                                        bool contents, const std::string& name);

// Which variant of an enum a Rust function returns (on x86-64): Ok or Err, Some or None. Nothing if the function
// returns no enum with data.
[[nodiscard]] std::optional<Reading> returned_variant(Dwarf_Die* function);

}  // namespace rose::symbols
