// Differences between processors.
#pragma once

#include <elf.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstdint>
#include <string_view>

namespace rose::kernel {

#if defined(__x86_64__)
inline constexpr std::string_view kMachine = "x86_64";  // the name that uname prints
inline constexpr std::uint32_t kAuditArch = AUDIT_ARCH_X86_64;
inline constexpr int kElfMachine = EM_X86_64;
// The first call that the C library makes in a new program, before it reads a clock.
inline constexpr int kFirstCall = SYS_arch_prctl;
inline constexpr std::string_view kCallPrefix = "__x64_sys_";  // prefix of the kernel's functions for system calls
#elif defined(__aarch64__)
inline constexpr std::string_view kMachine = "aarch64";
inline constexpr std::uint32_t kAuditArch = AUDIT_ARCH_AARCH64;
inline constexpr int kElfMachine = EM_AARCH64;
inline constexpr int kFirstCall = SYS_set_tid_address;
inline constexpr std::string_view kCallPrefix = "__arm64_sys_";
#else
#error "rose knows x86-64 and arm64"
#endif

}  // namespace rose::kernel
