// Decodes the instructions of a Java method: their boundaries, calls and jumps. Used by rose, which reads class files,
// and by its agent, so it needs only standard headers. Any bytes are safe to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rose::jvm {

using Code = std::span<const unsigned char>;

// Length of the instruction at `at` in bytes; 0 if no instruction can begin there.
[[nodiscard]] std::size_t instruction_size(Code code, std::size_t at);

// invokevirtual, -special, -static, -interface, -dynamic
[[nodiscard]] inline bool is_call(unsigned char opcode) { return opcode >= 0xb6 && opcode <= 0xba; }
[[nodiscard]] inline bool is_return(unsigned char opcode) { return opcode >= 0xac && opcode <= 0xb1; }
[[nodiscard]] inline bool is_switch(unsigned char opcode) { return opcode == 0xaa || opcode == 0xab; }

// The jump targets of the instruction at `at` (which instruction_size() accepts), and whether execution may also
// continue after it.
struct Jumps {
  std::size_t targets = 0;
  bool goes_on = true;
};
[[nodiscard]] Jumps jumps_of(Code code, std::size_t at);
// The offset of its nth target; it may be outside the code if the code is damaged.
[[nodiscard]] std::int64_t jump_target(Code code, std::size_t at, std::size_t nth);

// True if an instruction begins at `at`.
[[nodiscard]] bool begins_at(Code code, std::size_t at);

}  // namespace rose::jvm
