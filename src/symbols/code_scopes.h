// The scopes of code around a place, of whatever language: blocks, what is inlined, the function itself.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

namespace rose::symbols {

// Innermost first, as they stand in the code, not as the source nests them. `pc`: as the unit's debug information
// counts.
[[nodiscard]] std::vector<Dwarf_Die> scopes_at(Dwarf_Die* unit, std::uint64_t pc);

}  // namespace rose::symbols
