// DWARF's types: going down members, and how a value of a type is read and told. Private to this room.
#pragma once

#include <elfutils/libdw.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/dwarf_location.h"
#include "symbols/values.h"

namespace rose::symbols {

// Without typedefs, const and the like. nullopt: void, or damaged.
[[nodiscard]] std::optional<Dwarf_Die> type_of(Dwarf_Die* die);
[[nodiscard]] std::string type_name(Dwarf_Die* die);   // of what has a type: "const char *", "Shade"
[[nodiscard]] std::uint64_t size_of(Dwarf_Die* type);  // 0: not known

// A value of a C or C++ function's result type: in rax, in rax and rdx, or where rax points. `rust`: as Rust returns
// it.
[[nodiscard]] Stand returned_stand(Dwarf_Die* type, bool rust);

// What of an argument is simple enough to be asked unasked, as it is written behind its name: "" itself, "->term".
// None: nothing.
[[nodiscard]] std::vector<std::string> simple_members(Dwarf_Die* typed);

struct Reading {
  Fetch fetch;
  Form form;
  std::string refused;  // why it can't be read; "" when it can
};
// Of what has a type and stands there, down the members. ErrorKind::input: there is no such member, or it must be asked
// for one.
[[nodiscard]] Result<Reading> read_down(Dwarf_Die* typed, Stand stand, const std::vector<std::string>& members,
                                        bool contents, const std::string& name);

}  // namespace rose::symbols
