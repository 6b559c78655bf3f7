#include "observe/shapes.h"

#include <string_view>

#include "kernel/syscalls.h"

namespace rose::observe {
namespace {

struct Noise {
  std::string_view syscall;
  std::uint8_t kinds;
};

// Failures that are how the call is used, not that something failed. The one list of them.
// EAGAIN counts only on non-blocking descriptors (or with MSG_DONTWAIT): on a blocking one it says
// that a time limit (SO_RCVTIMEO) ran out, which is worth recording.
constexpr Noise kNoise[] = {
    {"read", ROSE_NOISE_AGAIN_NONBLOCK},
    {"write", ROSE_NOISE_AGAIN_NONBLOCK},
    {"readv", ROSE_NOISE_AGAIN_NONBLOCK},
    {"writev", ROSE_NOISE_AGAIN_NONBLOCK},
    {"pread64", ROSE_NOISE_AGAIN_NONBLOCK},
    {"pwrite64", ROSE_NOISE_AGAIN_NONBLOCK},
    {"preadv", ROSE_NOISE_AGAIN_NONBLOCK},
    {"pwritev", ROSE_NOISE_AGAIN_NONBLOCK},
    {"preadv2", ROSE_NOISE_AGAIN},
    {"pwritev2", ROSE_NOISE_AGAIN},
    {"sendfile", ROSE_NOISE_AGAIN_NONBLOCK},
    {"splice", ROSE_NOISE_AGAIN},
    {"tee", ROSE_NOISE_AGAIN},
    {"vmsplice", ROSE_NOISE_AGAIN},
    {"accept", ROSE_NOISE_AGAIN_NONBLOCK},
    {"accept4", ROSE_NOISE_AGAIN_NONBLOCK},
    {"recvfrom", ROSE_NOISE_AGAIN_NONBLOCK},
    {"recvmsg", ROSE_NOISE_AGAIN_NONBLOCK},
    {"recvmmsg", ROSE_NOISE_AGAIN_NONBLOCK},
    {"sendto", ROSE_NOISE_AGAIN_NONBLOCK},
    {"sendmsg", ROSE_NOISE_AGAIN_NONBLOCK},
    {"sendmmsg", ROSE_NOISE_AGAIN_NONBLOCK},
    {"connect", ROSE_NOISE_PROGRESS},
    {"futex", ROSE_NOISE_AGAIN | ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"futex_wait", ROSE_NOISE_AGAIN | ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"futex_waitv", ROSE_NOISE_AGAIN | ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"poll", ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"ppoll", ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"select", ROSE_NOISE_INTR},
    {"pselect6", ROSE_NOISE_INTR},
    {"epoll_wait", ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"epoll_pwait", ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"epoll_pwait2", ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"nanosleep", ROSE_NOISE_INTR},
    {"clock_nanosleep", ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"pause", ROSE_NOISE_INTR},
    {"rt_sigsuspend", ROSE_NOISE_INTR},
    {"rt_sigtimedwait", ROSE_NOISE_AGAIN | ROSE_NOISE_INTR},
    {"wait4", ROSE_NOISE_INTR},
    {"waitid", ROSE_NOISE_INTR},
    {"io_getevents", ROSE_NOISE_INTR},
    {"io_pgetevents", ROSE_NOISE_INTR},
    {"io_uring_enter", ROSE_NOISE_AGAIN | ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
    {"semtimedop", ROSE_NOISE_AGAIN | ROSE_NOISE_INTR},
    {"mq_timedreceive", ROSE_NOISE_INTR | ROSE_NOISE_TIMEOUT},
};

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

CallTables call_tables() {
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
  for (const auto& noise : kNoise) {
    if (const auto* info = kernel::find_syscall(noise.syscall); info != nullptr) {
      tables.shapes[static_cast<std::size_t>(info->number)].noise = noise.kinds;
    }
  }
  for (const auto& extra : kExtra) {
    if (const auto* info = kernel::find_syscall(extra.syscall); info != nullptr) {
      auto& shape = tables.shapes[static_cast<std::size_t>(info->number)];
      shape.flags = extra.flags;
      shape.message_flags = extra.message_flags;
    }
  }
  return tables;
}

}  // namespace rose::observe
