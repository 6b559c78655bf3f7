// The differences between programs for x86-64 and for arm64: registers by their DWARF numbers, and how calls use them.
// A file is interpreted for the machine for which it was built, whichever machine reads it.
// https://gitlab.com/x86-psABIs/x86-64-ABI, https://github.com/ARM-software/abi-aa (aapcs64, aadwarf64)
#pragma once

#include <elf.h>

#include <array>
#include <cstdint>
#include <span>

namespace rose::symbols {

struct Machine {
  int elf = 0;                   // e_machine
  std::uint8_t instruction = 0;  // the instruction pointer; all integer registers have smaller numbers
  std::uint8_t stack = 0;        // the stack pointer
  // registers with the arguments of C functions, in order; all further arguments are on the stack
  std::span<const std::uint8_t> arguments;
  std::span<const std::uint8_t> go_arguments;  // registers with the arguments of Go functions
  std::uint8_t returned = 0;                   // the register with the result of a C function
  // at a function's entry: the register with the return address or, on some machines, with its location on the stack
  std::uint8_t caller = 0;
  bool caller_on_stack = false;  // true: `caller` contains the location of the return address on the stack
  std::uint8_t goroutine = 0;    // in Go functions, the register that points to the runtime's g
  // the frame pointer; it points to the frame pointer of the caller, after which the return address is stored
  std::uint8_t frame = 0;
};

namespace machine {
inline constexpr std::array<std::uint8_t, 6> kX86Arguments = {5, 4, 1, 2, 8, 9};      // rdi rsi rdx rcx r8 r9
inline constexpr std::array<std::uint8_t, 9> kX86Go = {0, 3, 2, 5, 4, 8, 9, 10, 11};  // rax rbx rcx rdi rsi r8-r11
inline constexpr std::array<std::uint8_t, 8> kArm64Arguments = {0, 1, 2, 3, 4, 5, 6, 7};
inline constexpr std::array<std::uint8_t, 16> kArm64Go = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline constexpr Machine kX86 = {EM_X86_64, 16, 7, kX86Arguments, kX86Go, 0, 7, true, 14, 6};
inline constexpr Machine kArm64 = {EM_AARCH64, 32, 31, kArm64Arguments, kArm64Go, 0, 30, false, 28, 29};
#ifdef __aarch64__
inline constexpr const Machine& kOwn = kArm64;
#else
inline constexpr const Machine& kOwn = kX86;
#endif
}  // namespace machine

// Returns nullptr for an unsupported machine.
inline const Machine* machine_of(int elf) {
  return elf == EM_X86_64 ? &machine::kX86 : elf == EM_AARCH64 ? &machine::kArm64 : nullptr;
}

}  // namespace rose::symbols
