#include "observe/call_signatures.h"

#include <string_view>

#include "kernel/syscalls.h"

namespace rose::observe {
namespace {

struct Extra {
  std::string_view syscall;
  std::uint16_t flags;
  std::int8_t message_flags;
};

constexpr Extra kExtra[] = {
    {"open", ROSE_FLAGS_1, -1},
    {"openat", ROSE_FLAGS_2, -1},
    {"openat2", ROSE_FLAGS_HOW, -1},
    {"symlink", ROSE_TEXT2, -1},
    {"symlinkat", ROSE_TEXT2, -1},
    {"mount", ROSE_TEXT2, -1},
    {"accept", ROSE_NEW_SOCKET, -1},
    {"accept4", ROSE_NEW_SOCKET, -1},
    {"sendto", 0, 3},
    {"recvfrom", 0, 3},
    {"sendmsg", 0, 2},
    {"recvmsg", 0, 2},
    {"sendmmsg", 0, 3},
    {"recvmmsg", 0, 3},
};

}  // namespace

CallSignatures call_signatures(const kernel::NoiseTable& noise) {
  CallSignatures tables;
  for (auto& signature : tables.signatures) {
    signature.path = signature.dirfd = signature.path2 = signature.dirfd2 = signature.fd = signature.sockaddr =
        signature.message_flags = -1;
  }
  for (const auto& info : kernel::all_syscalls()) {
    if (info.number < 0 || info.number >= ROSE_SYSCALLS) continue;
    const auto number = static_cast<std::size_t>(info.number);
    auto& signature = tables.signatures[number];
    signature.path = info.path;
    signature.dirfd = info.dirfd;
    signature.path2 = info.path2;
    signature.dirfd2 = info.dirfd2;
    signature.fd = info.fd;
    signature.sockaddr = info.sockaddr;
    if (kernel::names_peer_in_message(info.name)) signature.flags |= ROSE_MESSAGE;
    // exec is recorded when it happens, because at the exit of the call its arguments are gone with the old program.
    const bool exec = info.name == "execve" || info.name == "execveat";
    if (!info.state_changing || exec) continue;
    tables.changing[number / 64] |= std::uint64_t{1} << (number % 64);
    tables.classes[number] = ROSE_CHANGES;
  }
  // Calls whose size is an argument. Vectored calls are left out, because their size is in the program's memory and
  // reading it would cost too much.
  for (const std::string_view call : {"read", "write", "pread64", "pwrite64"})
    if (const auto* info = kernel::find_syscall(call); info != nullptr)
      tables.classes[static_cast<std::size_t>(info->number)] = ROSE_SIZED;
  for (const auto& extra : kExtra) {
    if (const auto* info = kernel::find_syscall(extra.syscall); info != nullptr) {
      auto& signature = tables.signatures[static_cast<std::size_t>(info->number)];
      signature.flags |= extra.flags;
      signature.message_flags = extra.message_flags;
    }
  }
  static_assert(ROSE_NOISE_ERRNOS == kernel::NoiseTable::kErrnos && ROSE_SYSCALLS >= kernel::kMostSyscalls);
  for (std::size_t number = 0; number < noise.expected.size(); ++number) {
    if (noise.again_when_nonblocking.test(number)) tables.signatures[number].flags |= ROSE_AGAIN_NONBLOCK;
    for (std::size_t err = 0; err < kernel::NoiseTable::kErrnos; ++err) {
      if (noise.expected[number].test(err))
        tables.noise[number * ROSE_NOISE_WORDS + err / 64] |= std::uint64_t{1} << (err % 64);
    }
  }
  return tables;
}

}  // namespace rose::observe
