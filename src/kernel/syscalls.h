// The system calls with this processor's numbers, errno and signal names, and what each argument of a call refers to.
// Pure data: usable without privilege.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::kernel {

#ifdef __x86_64__
inline constexpr bool kPortableNumbers = true;
#else
inline constexpr bool kPortableNumbers = false;  // false: the numbers in dumps differ from those of this kernel
#endif
inline constexpr int kMostSyscalls = 512;  // numbers at or above this are refused

// The argument positions by meaning; -1 if the call has no such argument.
struct SyscallInfo {
  int number = -1;
  std::string_view name;
  std::int8_t path = -1;   // argument index of the (first) path string
  std::int8_t dirfd = -1;  // position of the directory descriptor that the first path is relative to
  std::int8_t path2 = -1;  // position of the second path (rename, link, symlink, ...)
  std::int8_t dirfd2 = -1;
  std::int8_t fd = -1;          // position of the descriptor that the call works on
  std::int8_t sockaddr = -1;    // position of a struct sockaddr that is passed to the kernel (connect, bind, sendto)
  bool state_changing = false;  // a successful call can be a SYS event
};

[[nodiscard]] const SyscallInfo* find_syscall(std::string_view name);
[[nodiscard]] const SyscallInfo* find_syscall(int number);  // nullptr if the number is unknown
[[nodiscard]] const std::vector<SyscallInfo>& all_syscalls();
// "openat", or "syscall_470" for a number newer than the table.
[[nodiscard]] std::string syscall_name(int number);
// The inverse of syscall_name; accepts "syscall_470", too.
[[nodiscard]] std::optional<int> syscall_number(std::string_view name);
[[nodiscard]] std::vector<std::string> syscall_names();
// portable_call() converts a call's number to the form used in dumps, which is its number on x86-64, whichever
// processor wrote the dump. native_call() converts it back; a call that this processor lacks gets a number that its
// kernel does not use.
[[nodiscard]] int portable_call(int number);
[[nodiscard]] int native_call(int portable);
// True for bind, listen and accept: the address of such a call is the caller's own.
[[nodiscard]] bool names_own_address(std::string_view syscall);
// True for sendmsg and sendmmsg: the destination may be in the msghdr that argument 1 points to (for sendmmsg, in the
// first message).
[[nodiscard]] bool names_peer_in_message(std::string_view syscall);
// True if the call may send a datagram to an address of its choice.
[[nodiscard]] bool sends_datagrams(std::string_view syscall);

// errno_name() gives "EIO" for 5, and errno_number() is the inverse. An unknown number is written as "E" and the number
// ("E4000"), and read back.
[[nodiscard]] std::string errno_name(int err);
[[nodiscard]] std::optional<int> errno_number(std::string_view name);
[[nodiscard]] std::vector<std::string> errno_names();
// True for errors of a disk or another resource (EIO, ENOSPC, EMFILE, ...), which healthy programs rarely see.
[[nodiscard]] bool resource_error(int err);
// True for failures that language runtimes cause and handle on their own. The C library opens a message catalogue when
// it formats an error, Go tries whether a file can be polled, and Python tries whether a file is a terminal and can
// seek. `path`: "" if unknown.
[[nodiscard]] bool runtime_asks(int err, std::string_view syscall, std::string_view path);

// signal_name() gives "SIGKILL" for 9, and signal_number() is the inverse. Real-time signals are written as "SIG34".
[[nodiscard]] std::string signal_name(int signal);
[[nodiscard]] std::optional<int> signal_number(std::string_view name);

}  // namespace rose::kernel
