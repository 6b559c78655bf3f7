// Finds the scopes that contain an address, for any language: blocks, inlined functions and the function itself.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rose::symbols {

// Returns the scopes as they are nested in the machine code, not in the source, innermost first. `pc` is an address as
// in the debug information of the unit.
[[nodiscard]] std::vector<Dwarf_Die> scopes_at(Dwarf_Die* unit, std::uint64_t pc);

inline constexpr std::string_view kAnonymousScope = "(anonymous namespace)";
// The classes and namespaces around the declaration of a function: "(anonymous namespace)::Node::". This is needed
// because code in an anonymous namespace has no linkage name. The function searches the whole unit.
[[nodiscard]] std::string scope_of(Dwarf_Die* function);

}  // namespace rose::symbols
