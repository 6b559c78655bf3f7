#include "jvm/agent/stubs.h"

// In a file of its own, so that no caller is compiled together with it. A nop at the entry is emulated by the kernel,
// without stepping through a copy of it.
extern "C" {
__attribute__((noinline)) void rose_jvm_visit(const std::uint32_t*, std::uint32_t, std::uint32_t) {
  __asm__ volatile("nop" ::: "memory");
}
__attribute__((noinline)) void rose_jvm_enter(const char*, std::uint32_t) { __asm__ volatile("nop" ::: "memory"); }
__attribute__((noinline)) void rose_jvm_value(const void*, std::uint32_t) { __asm__ volatile("nop" ::: "memory"); }
}
