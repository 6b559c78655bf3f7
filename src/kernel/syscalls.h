// The x86-64 syscall table, errno and signal names, and what each argument of a call means to
// rose. Pure data: usable without privilege.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::kernel {

inline constexpr int kMostSyscalls = 512;  // numbers at or above are refused

// What a syscall's arguments refer to. -1: it has none.
struct SyscallInfo {
  int number = -1;
  std::string_view name;
  std::int8_t path = -1;   // argument index of the (first) path string
  std::int8_t dirfd = -1;  // of the directory descriptor the first path is relative to
  std::int8_t path2 = -1;  // of the second path (rename, link, symlink, ...)
  std::int8_t dirfd2 = -1;
  std::int8_t fd = -1;          // of the descriptor it works on
  std::int8_t sockaddr = -1;    // of a struct sockaddr it passes to the kernel (connect, bind, sendto)
  bool state_changing = false;  // its success can be a SYS event
};

[[nodiscard]] const SyscallInfo* find_syscall(std::string_view name);
[[nodiscard]] const SyscallInfo* find_syscall(int number);  // nullptr: no such number
[[nodiscard]] const std::vector<SyscallInfo>& all_syscalls();
// "openat", or "syscall_470" for a number newer than the table.
[[nodiscard]] std::string syscall_name(int number);
// Its inverse, "syscall_470" included.
[[nodiscard]] std::optional<int> syscall_number(std::string_view name);
[[nodiscard]] std::vector<std::string> syscall_names();
// Accepting, binding, listening: the address that such a call is about is the caller's own.
[[nodiscard]] bool names_own_address(std::string_view syscall);
// sendmsg, sendmmsg: whom it sends to may stand in the msghdr that argument 1 points to (of many messages the first
// one's is meant).
[[nodiscard]] bool names_peer_in_message(std::string_view syscall);
// May send a datagram to an address of its own choice.
[[nodiscard]] bool sends_datagrams(std::string_view syscall);

// "EIO" <-> 5. Unknown numbers are written as "E4000" style decimals ("E" + number) and read back.
[[nodiscard]] std::string errno_name(int err);
[[nodiscard]] std::optional<int> errno_number(std::string_view name);
[[nodiscard]] std::vector<std::string> errno_names();
// A disk or another resource that fails (EIO, ENOSPC, EMFILE, ...): healthy programs hardly ever see these.
[[nodiscard]] bool resource_error(int err);
// What runtimes ask for on any way, and do without: the C library a catalogue of messages when it puts an error into
// words, Go whether a file can be waited for. `path`: "" unknown.
[[nodiscard]] bool runtime_asks(int err, std::string_view syscall, std::string_view path);

// "SIGKILL" <-> 9; real-time signals as "SIG34".
[[nodiscard]] std::string signal_name(int signal);
[[nodiscard]] std::optional<int> signal_number(std::string_view name);

}  // namespace rose::kernel
