// Decodes the instructions of a Java method: their boundaries, calls and jumps. Both rose, which reads class files, and
// its agent use it, so it needs only headers of the standard library. It can read arbitrary bytes safely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rose::jvm {

using Code = std::span<const unsigned char>;

// The length of the instruction at `at` in bytes; 0 if no instruction can begin there.
[[nodiscard]] std::size_t instruction_size(Code code, std::size_t at);

// True for invokevirtual, invokespecial, invokestatic, invokeinterface and invokedynamic.
[[nodiscard]] inline bool is_call(unsigned char opcode) { return opcode >= 0xb6 && opcode <= 0xba; }
[[nodiscard]] inline bool is_return(unsigned char opcode) { return opcode >= 0xac && opcode <= 0xb1; }
[[nodiscard]] inline bool is_switch(unsigned char opcode) { return opcode == 0xaa || opcode == 0xab; }

// The jump targets of the instruction at `at`, and whether execution may also continue with the next instruction.
// instruction_size() must have accepted the instruction.
struct Jumps {
  std::size_t targets = 0;
  bool goes_on = true;
};
[[nodiscard]] Jumps jumps_of(Code code, std::size_t at);
// The offset of the nth target. If the code is damaged, the offset may be outside the code.
[[nodiscard]] std::int64_t jump_target(Code code, std::size_t at, std::size_t nth);

// True if an instruction begins at `at`.
[[nodiscard]] bool begins_at(Code code, std::size_t at);

}  // namespace rose::jvm
