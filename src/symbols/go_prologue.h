// Finds the first instruction after the stack check of Go functions. Pure. Private to symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "symbols/machine.h"

namespace rose::symbols {

// Most Go functions first check the size of the stack and start again after enlarging it, so a probe on the entry is
// hit twice by such a call and a probe after the check once. Returns the length of the check at the start of `code` in
// bytes, or 0 if there is none.
[[nodiscard]] std::size_t stack_check_bytes(std::span<const std::uint8_t> code, const Machine& machine);

}  // namespace rose::symbols
