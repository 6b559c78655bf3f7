// What the code of Go functions shows: the first instruction after the stack check, and where the runtime keeps the
// creator of a goroutine. Pure. Private to symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "symbols/machine.h"

namespace rose::symbols {

// Most Go functions first check the size of the stack and start again after enlarging it, so a probe on the entry is
// hit twice by such a call and a probe after the check once. Returns the length of the check at the start of `code` in
// bytes, or 0 if there is none.
[[nodiscard]] std::size_t stack_check_bytes(std::span<const std::uint8_t> code, const Machine& machine);

// The function that reads it, for stack traces ("created by").
inline constexpr const char* kGoCreatorReader = "runtime.printcreatedby";
// The offset in the runtime's g of its `gopc`: the return address of the `go` statement that started the goroutine. It
// differs between versions, and debug information is often missing, so it is taken from the `code` of that function:
// the first word that it loads far into its argument, the g. Nothing for Go before 1.17, whose arguments are on the
// stack, and whose g is in no register.
[[nodiscard]] std::optional<std::uint64_t> go_creator_offset(std::span<const std::uint8_t> code,
                                                             const Machine& machine);

}  // namespace rose::symbols
