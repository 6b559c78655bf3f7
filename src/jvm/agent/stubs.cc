#include "jvm/agent/stubs.h"

// These functions are in a separate file, so that callers cannot inline them. Each starts with a nop, because a probe
// on a nop is faster: the kernel emulates a nop, whereas it executes a copy of any other instruction in single-step
// mode.
extern "C" {
__attribute__((noinline)) void rose_jvm_visit(const std::uint32_t*, std::uint32_t, std::uint32_t) {
  __asm__ volatile("nop" ::: "memory");
}
__attribute__((noinline)) void rose_jvm_enter(const char*, std::uint32_t) { __asm__ volatile("nop" ::: "memory"); }
__attribute__((noinline)) void rose_jvm_value(const void*, std::uint32_t) { __asm__ volatile("nop" ::: "memory"); }
}
