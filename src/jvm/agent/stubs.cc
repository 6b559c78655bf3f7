#include "jvm/agent/stubs.h"

// These functions are in a separate file, so that callers cannot inline them. They start with a nop, because the kernel
// emulates a probed nop instead of single-stepping a copy of the instruction, which is faster.
extern "C" {
__attribute__((noinline)) void rose_jvm_visit(const std::uint32_t*, std::uint32_t, std::uint32_t) {
  __asm__ volatile("nop" ::: "memory");
}
__attribute__((noinline)) void rose_jvm_enter(const char*, std::uint32_t) { __asm__ volatile("nop" ::: "memory"); }
__attribute__((noinline)) void rose_jvm_value(const void*, std::uint32_t) { __asm__ volatile("nop" ::: "memory"); }
}
