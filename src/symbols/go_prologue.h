// What the code of Go functions shows: the first instruction after the stack check, and where the runtime stores the
// address of the code that created a goroutine. Pure. Private to symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "symbols/machine.h"

namespace rose::symbols {

// The length in bytes of the stack check at the start of `code`, or 0 if there is none. Most Go functions first check
// the size of the stack, and start again after enlarging it. A probe on the entry is hit twice by such a call; a probe
// after the check is hit once.
[[nodiscard]] std::size_t stack_check_bytes(std::span<const std::uint8_t> code, const Machine& machine);

// The function of the runtime that reads gopc, for stack traces ("created by").
inline constexpr const char* kGoCreatorReader = "runtime.printcreatedby";
// The offset of `gopc` in the runtime's g. It is the return address of the `go` statement that started the goroutine.
// The offset differs between versions, and debug information is often missing. Therefore it is taken from `code`, the
// code of kGoCreatorReader, which gets g as its argument: it is the offset of the first word that this code loads from
// far inside g. Nothing for Go before 1.17, where arguments are on the stack and no register contains g.
[[nodiscard]] std::optional<std::uint64_t> go_creator_offset(std::span<const std::uint8_t> code,
                                                             const Machine& machine);

}  // namespace rose::symbols
