// Probes for answering system calls of other processes: seccomp listeners and shared descriptors.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unix_socket.h"
#include "kernel/arch.h"
#include "kernel/probe_child.h"
#include "kernel/probes.h"

namespace rose::kernel::probing {
namespace {

constexpr unsigned kWaitKillable = 1U << 5;                       // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
constexpr unsigned long kSetFlags = _IOW('!', 4, std::uint64_t);  // SECCOMP_IOCTL_NOTIF_SET_FLAGS
constexpr std::uint64_t kSyncWakeUp = 1;                          // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP

// Runs in the child. Installs a filter that reports openat to a listener, sends this listener to the parent, and then
// opens a file. Returns 0 if opening the file failed with EIO, which is the answer that the parent gives.
int seccomp_child(int socket, unsigned flags) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAuditArch, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  // Without CAP_SYS_ADMIN, the kernel accepts filters only if no_new_privs is set.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  const int listener = static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, &program));
  if (listener < 0) return errno;
  if (!send_descriptor(socket, listener, 0)) return 254;
  ::close(listener);
  const long opened = ::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY);
  return opened == -1 && errno == EIO ? 0 : 253;
}

Finding try_seccomp(unsigned flags, bool sync_wake_up) {
  Child child([flags](int socket) { return seccomp_child(socket, flags); });
  if (!child.started()) return no("no child could be started");
  const Fd listener = wait_readable(child.socket(), kPatienceMs) ? receive_descriptor(child.socket(), 0) : Fd();
  if (!listener) {
    const int status = child.wait(kPatienceMs);
    if (status >= 0 && WIFEXITED(status)) return no_errno("installing the filter", WEXITSTATUS(status));
    return no("the filter's listener did not arrive");
  }
  if (sync_wake_up && ::ioctl(listener.get(), kSetFlags, kSyncWakeUp) != 0) {
    return no_errno("asking for synchronous wake-ups", errno);
  }
  if (!wait_readable(listener.get(), kPatienceMs)) return no("the system call was not notified");
  // Kernels may use larger structures than our headers declare.
  alignas(seccomp_notif) char request_bytes[4096] = {};
  alignas(seccomp_notif_resp) char answer_bytes[4096] = {};
  auto* request = reinterpret_cast<seccomp_notif*>(request_bytes);
  auto* answer = reinterpret_cast<seccomp_notif_resp*>(answer_bytes);
  if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, request) != 0)
    return no_errno("receiving the notification", errno);
  answer->id = request->id;
  answer->error = -EIO;
  if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, answer) != 0) return no_errno("answering it", errno);
  const int status = child.wait(kPatienceMs);
  if (status < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return no("the answer did not reach the process");
  return yes("openat was answered with EIO");
}

}  // namespace

Finding probe_seccomp_notify() { return try_seccomp(0, false); }
Finding probe_seccomp_wait_killable() { return try_seccomp(kWaitKillable, false); }
Finding probe_seccomp_sync_wake_up() { return try_seccomp(0, true); }

Finding probe_pidfd_getfd() {
  Child child([](int socket) {
    const int file = ::memfd_create("rose_probe", MFD_CLOEXEC);
    if (file < 0 || ::write(file, "rose", 4) != 4 || ::write(socket, &file, sizeof file) != sizeof file) return 1;
    return wait_for_parent(socket) ? 0 : 1;
  });
  if (!child.started()) return no("no child could be started");
  int theirs = -1;
  if (!wait_readable(child.socket(), kPatienceMs) || ::read(child.socket(), &theirs, sizeof theirs) != sizeof theirs) {
    return no("the child did not answer");
  }
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0)));
  if (!pidfd) return no_errno("pidfd_open", errno);
  const Fd file(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), theirs, 0)));
  if (!file) return no_errno("pidfd_getfd", errno);
  char text[4] = {};
  if (::pread(file.get(), text, 4, 0) != 4 || std::memcmp(text, "rose", 4) != 0) return no("another file came back");
  return yes("another process's file was shared");
}

}  // namespace rose::kernel::probing
