// Where Go's functions really begin. Pure. Private to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rose::symbols {

// Most of Go's functions first ask whether the stack is large enough, and begin anew once it has been made larger: a
// probe on the entry is passed twice by such a call, one behind the check once. How many bytes of the function's
// `code` the check takes; 0 when it begins without one.
[[nodiscard]] std::size_t stack_check_bytes(std::span<const std::uint8_t> code);

}  // namespace rose::symbols
