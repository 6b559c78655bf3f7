#include "observe/shapes.h"

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
    {"sendmsg", ROSE_MESSAGE, 2},
    {"recvmsg", 0, 2},
    {"sendmmsg", ROSE_MESSAGE, 3},
    {"recvmmsg", 0, 3},
};

}  // namespace

CallTables call_tables(const kernel::NoiseTable& noise) {
  CallTables tables;
  for (auto& shape : tables.shapes) {
    shape.path = shape.dirfd = shape.path2 = shape.dirfd2 = shape.fd = shape.sockaddr = shape.message_flags = -1;
  }
  for (const auto& info : kernel::all_syscalls()) {
    if (info.number < 0 || info.number >= ROSE_SYSCALLS) continue;
    const auto number = static_cast<std::size_t>(info.number);
    auto& shape = tables.shapes[number];
    shape.path = info.path;
    shape.dirfd = info.dirfd;
    shape.path2 = info.path2;
    shape.dirfd2 = info.dirfd2;
    shape.fd = info.fd;
    shape.sockaddr = info.sockaddr;
    // exec is told when it happens: at the call's exit its arguments are gone with the old program.
    const bool exec = info.name == "execve" || info.name == "execveat";
    if (info.state_changing && !exec) tables.changing[number / 64] |= std::uint64_t{1} << (number % 64);
  }
  for (const auto& extra : kExtra) {
    if (const auto* info = kernel::find_syscall(extra.syscall); info != nullptr) {
      auto& shape = tables.shapes[static_cast<std::size_t>(info->number)];
      shape.flags = extra.flags;
      shape.message_flags = extra.message_flags;
    }
  }
  static_assert(ROSE_NOISE_ERRNOS == kernel::NoiseTable::kErrnos && ROSE_SYSCALLS >= kernel::kMostSyscalls);
  for (std::size_t number = 0; number < noise.expected.size(); ++number) {
    if (noise.again_when_nonblocking.test(number)) tables.shapes[number].flags |= ROSE_AGAIN_NONBLOCK;
    for (std::size_t err = 0; err < kernel::NoiseTable::kErrnos; ++err) {
      if (noise.expected[number].test(err))
        tables.noise[number * ROSE_NOISE_WORDS + err / 64] |= std::uint64_t{1} << (err % 64);
    }
  }
  return tables;
}

}  // namespace rose::observe
