// To be called in each iteration of a loop that waits for another processor, where system calls are not possible.
#pragma once

namespace rose {

inline void relax() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#else
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace rose
