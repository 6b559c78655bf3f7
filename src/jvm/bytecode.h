// The instructions of a Java method: where each begins, which of them call, and where they may go on. For rose, which
// reads class files, and for its agent; nothing but headers of the standard library. Any bytes are safe to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rose::jvm {

using Code = std::span<const unsigned char>;

// Bytes of the instruction at `at`; 0 when none can begin there.
[[nodiscard]] std::size_t instruction_size(Code code, std::size_t at);

// invokevirtual, -special, -static, -interface, -dynamic
[[nodiscard]] inline bool is_call(unsigned char opcode) { return opcode >= 0xb6 && opcode <= 0xba; }
[[nodiscard]] inline bool is_return(unsigned char opcode) { return opcode >= 0xac && opcode <= 0xb1; }
[[nodiscard]] inline bool is_switch(unsigned char opcode) { return opcode == 0xaa || opcode == 0xab; }

// Where the instruction at `at`, which instruction_size() knows, may jump to, and whether it may also go on behind
// itself.
struct Jumps {
  std::size_t targets = 0;
  bool goes_on = true;
};
[[nodiscard]] Jumps jumps_of(Code code, std::size_t at);
// The nth of its targets, as an offset; outside of the code when the code is damaged.
[[nodiscard]] std::int64_t jump_target(Code code, std::size_t at, std::size_t nth);

// Does an instruction begin at `at`?
[[nodiscard]] bool begins_at(Code code, std::size_t at);

}  // namespace rose::jvm
