// Finds two things in the code of Go functions: the first instruction after the stack check, and where the runtime
// stores the address of the code that created a goroutine. Pure. Private to symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "symbols/machine.h"

namespace rose::symbols {

// The length in bytes of the stack check at the start of `code`; 0 if there is none. Most Go functions begin with a
// check of the stack's size, and start again if the stack had to be enlarged. Such a call hits a probe on the entry
// twice, and a probe after the check once.
[[nodiscard]] std::size_t stack_check_bytes(std::span<const std::uint8_t> code, const Machine& machine);

// The function of the runtime that reads gopc, which is printed in stack traces ("created by").
inline constexpr const char* kGoCreatorReader = "runtime.printcreatedby";
// The offset of `gopc` in the runtime's g. gopc is the return address of the `go` statement that started the goroutine.
// Its offset differs between versions, and debug information is often missing. Therefore the offset is taken from
// `code`, the code of kGoCreatorReader, which gets g as its argument: gopc is the first word that this code loads from
// g at a large offset. Nothing for Go before 1.17, where arguments are on the stack and no register contains g.
[[nodiscard]] std::optional<std::uint64_t> go_creator_offset(std::span<const std::uint8_t> code,
                                                             const Machine& machine);

}  // namespace rose::symbols
