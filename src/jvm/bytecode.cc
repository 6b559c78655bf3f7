#include "jvm/bytecode.h"

#include <string_view>

namespace rose::jvm {
namespace {

// The length of each instruction in bytes, as a digit. 'x' means that the instruction is undefined or its length
// varies. From the JVM specification, chapter 6.
constexpr std::string_view kSizes =
    "1111111111111111"  // 00 nop ... dconst_1 0f
    "2323322222111111"  // 10 bipush ... lload_1 1f
    "1111111111111111"  // 20
    "1111112222211111"  // 30 ... istore 36 ... istore_0 3b
    "1111111111111111"  // 40
    "1111111111111111"  // 50
    "1111111111111111"  // 60
    "1111111111111111"  // 70
    "1111311111111111"  // 80 iinc 84
    "1111111113333333"  // 90 ifeq 99
    "3333333332xx1111"  // a0 if_icmplt ... ret a9, switches
    // b0 ... invokeinterface b9, invokedynamic ba, new bb, newarray bc, anewarray bd, arraylength, athrow
    "1133333335532311"
    // c0 checkcast, instanceof, monitors, wide c4, multianewarray c5, ifnull, ifnonnull, goto_w, jsr_w
    "3311x43355xxxxxx"
    "xxxxxxxxxxxxxxxx"  // d0
    "xxxxxxxxxxxxxxxx"  // e0
    "xxxxxxxxxxxxxxxx";
static_assert(kSizes.size() == 256);

constexpr unsigned char kTableSwitch = 0xaa, kLookupSwitch = 0xab, kWide = 0xc4, kGotoWide = 0xc8, kJsrWide = 0xc9;

std::int32_t word(Code code, std::size_t at) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(code[at]) << 24 |
                                   static_cast<std::uint32_t>(code[at + 1]) << 16 |
                                   static_cast<std::uint32_t>(code[at + 2]) << 8 | code[at + 3]);
}

// The operands of a switch are aligned to a multiple of four.
std::size_t aligned(std::size_t at) { return (at + 4) & ~std::size_t{3}; }

// The number of targets of a switch, without the default target. -1 if the code is damaged.
std::int64_t cases(Code code, std::size_t at) {
  const std::size_t operands = aligned(at);
  if (code[at] == kLookupSwitch) {
    if (operands + 8 > code.size()) return -1;
    const std::int64_t pairs = word(code, operands + 4);
    return pairs >= 0 && pairs <= static_cast<std::int64_t>(code.size()) ? pairs : -1;
  }
  if (operands + 12 > code.size()) return -1;
  const std::int64_t low = word(code, operands + 4), high = word(code, operands + 8);
  const std::int64_t count = high - low + 1;
  return count >= 0 && count <= static_cast<std::int64_t>(code.size()) ? count : -1;
}

}  // namespace

std::size_t instruction_size(Code code, std::size_t at) {
  if (at >= code.size()) return 0;
  std::size_t size = 0;
  const unsigned char opcode = code[at];
  if (is_switch(opcode)) {
    const std::int64_t count = cases(code, at);
    if (count < 0) return 0;
    const std::size_t head = opcode == kTableSwitch ? 12 : 8, each = opcode == kTableSwitch ? 4 : 8;
    size = aligned(at) + head + each * static_cast<std::size_t>(count) - at;
  } else if (opcode == kWide) {
    if (at + 1 >= code.size()) return 0;
    size = code[at + 1] == 0x84 ? 6 : 4;
  } else if (kSizes[opcode] != 'x') {
    size = static_cast<std::size_t>(kSizes[opcode] - '0');
  }
  return size > 0 && at + size <= code.size() ? size : 0;
}

Jumps jumps_of(Code code, std::size_t at) {
  const unsigned char opcode = code[at];
  if (is_switch(opcode)) return {static_cast<std::size_t>(cases(code, at)) + 1, false};
  if (is_return(opcode) || opcode == 0xbf || opcode == 0xa9) return {0, false};
  const bool wide = opcode == kGotoWide || opcode == kJsrWide;
  const bool narrow = (opcode >= 0x99 && opcode <= 0xa8) || opcode == 0xc6 || opcode == 0xc7;
  if (!wide && !narrow) return {0, true};
  return {1, opcode != 0xa7 && opcode != 0xa8 && !wide};
}

std::int64_t jump_target(Code code, std::size_t at, std::size_t nth) {
  const auto from = static_cast<std::int64_t>(at);
  const unsigned char opcode = code[at];
  if (opcode == kGotoWide || opcode == kJsrWide) return from + word(code, at + 1);
  if (opcode == kTableSwitch) return from + word(code, nth == 0 ? aligned(at) : aligned(at) + 8 + 4 * nth);
  if (opcode == kLookupSwitch) return from + word(code, nth == 0 ? aligned(at) : aligned(at) + 4 + 8 * nth);
  return from + static_cast<std::int16_t>(static_cast<std::uint16_t>(code[at + 1] << 8 | code[at + 2]));
}

bool begins_at(Code code, std::size_t at) {
  std::size_t here = 0;
  while (here < at) {
    const std::size_t size = instruction_size(code, here);
    if (size == 0) return false;
    here += size;
  }
  return here == at && at < code.size();
}

}  // namespace rose::jvm
