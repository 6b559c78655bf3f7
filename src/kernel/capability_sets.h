// Reads and writes the capability sets of a thread with system calls only, so that the functions also work in a signal
// handler and in a child that must not allocate. privilege.h decides which capabilities are needed.
#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>

namespace rose::kernel {

struct CapabilitySets {
  std::uint64_t effective = 0, permitted = 0, inheritable = 0;
};

// The functions are always inlined. Some callers must not be instrumented by sanitizers, so they must not call
// instrumented code either. They return false and set errno on failure.

// `thread` is a thread of this process; 0 means the calling thread.
[[nodiscard, gnu::always_inline]] inline bool get_capabilities(CapabilitySets& sets, pid_t thread = 0) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, thread};
  __user_cap_data_struct halves[2]{};
  if (::syscall(SYS_capget, &header, halves) != 0) return false;
  sets.effective = halves[0].effective | (std::uint64_t{halves[1].effective} << 32);
  sets.permitted = halves[0].permitted | (std::uint64_t{halves[1].permitted} << 32);
  sets.inheritable = halves[0].inheritable | (std::uint64_t{halves[1].inheritable} << 32);
  return true;
}

// Changes the calling thread only.
[[nodiscard, gnu::always_inline]] inline bool set_capabilities(const CapabilitySets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct halves[2]{};
  for (unsigned half = 0; half < 2; ++half) {
    halves[half].effective = static_cast<std::uint32_t>(sets.effective >> (32 * half));
    halves[half].permitted = static_cast<std::uint32_t>(sets.permitted >> (32 * half));
    halves[half].inheritable = static_cast<std::uint32_t>(sets.inheritable >> (32 * half));
  }
  return ::syscall(SYS_capset, &header, halves) == 0;
}

}  // namespace rose::kernel
