// Interprets DWARF types: access to members, and how to read and format a value of a type. Private to symbols.
#pragma once

#include <elfutils/libdw.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/dwarf_location.h"
#include "symbols/values.h"

namespace rose::symbols {

// The type of a DIE without typedefs and qualifiers. nullopt: void, or damaged debug information.
[[nodiscard]] std::optional<Dwarf_Die> type_of(Dwarf_Die* die);
[[nodiscard]] std::string type_name(Dwarf_Die* die);   // the name of the type of a DIE: "const char *", "Shade"
[[nodiscard]] std::uint64_t size_of(Dwarf_Die* type);  // 0: unknown

// The location of a returned C or C++ value: in rax, in rax and rdx, or in the memory to which rax points. `rust`:
// returned by Rust's calling convention.
[[nodiscard]] Stand returned_stand(Dwarf_Die* type, bool rust);

// The parts of an argument that are simple enough to be recorded without a request, in the form in which they follow
// the argument's name: "" for the argument itself, "->term" for a member. Empty if there are none.
[[nodiscard]] std::vector<std::string> simple_members(Dwarf_Die* typed);

struct Reading {
  Fetch fetch;
  Form form;
  std::string refused;  // why it cannot be read; "" if it can
};
// Follows the members of a typed object at a location. Returns ErrorKind::input if a member does not exist, or if the
// object is a structure and the query must name a member.
[[nodiscard]] Result<Reading> read_down(Dwarf_Die* typed, Stand stand, const std::vector<std::string>& members,
                                        bool contents, const std::string& name);

}  // namespace rose::symbols
