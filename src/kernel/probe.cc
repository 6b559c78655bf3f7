#include "kernel/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/if_link.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <memory>
#include <sstream>

#include "base/clock.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/unix_socket.h"
#include "kernel/attach.h"
#include "kernel/cgroup2.h"
#include "kernel/controllers.h"
#include "kernel/netlink.h"
#include "kernel/privilege.h"
#include "kernel/probe_bpf.h"
#include "kernel/probe_child.h"

namespace rose::kernel {
namespace {

using namespace probing;  // NOLINT: private helpers of this very file

constexpr int kPatienceMs = 1000;  // for one answer of the kernel or of a child
constexpr const char* kSelf = "/proc/self/exe";

// ---------------------------------------------------------------- privileges

struct NamedCapability {
  int bit;
  const char* name;
  const char* why;
};
constexpr NamedCapability kNeeded[] = {
    {21, "CAP_SYS_ADMIN", "namespaces, mounts, seccomp listeners"},
    {39, "CAP_BPF", "BPF programs"},
    {38, "CAP_PERFMON", "BPF tracing programs"},
    {12, "CAP_NET_ADMIN", "links, partitions"},
    {19, "CAP_SYS_PTRACE", "looking into other users' processes"},
    {5, "CAP_KILL", "ending and pausing other users' processes"},
};

std::string missing_capabilities(bool with_reasons) {
  const Capabilities have = effective_capabilities();
  std::string missing;
  for (const NamedCapability& needed : kNeeded) {
    if (have.has(needed.bit)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", needed.name);
    if (with_reasons) missing += fmt::format(" ({})", needed.why);
  }
  return missing;
}

Finding probe_root() {
  if (::geteuid() == 0) return yes("running as root");
  return no(fmt::format("running as user {}", ::geteuid()));
}

Finding probe_capabilities() {
  const std::string missing = missing_capabilities(true);
  if (!missing.empty()) return no("lacking " + missing);
  return yes("all that rose uses");
}

Finding probe_architecture() {
  utsname name = {};
  ::uname(&name);
  if (std::string_view(name.machine) == "x86_64") return yes(fmt::format("Linux {} on x86_64", name.release));
  return no(fmt::format("Linux {} on {}", name.release, name.machine));
}

Finding probe_btf() {
  const Fd file(::open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC));
  if (!file) return no_errno("opening /sys/kernel/btf/vmlinux", errno);
  std::uint16_t magic = 0;
  if (::read(file.get(), &magic, sizeof magic) != sizeof magic || magic != 0xeb9f) {
    return no("/sys/kernel/btf/vmlinux holds no BTF");
  }
  return yes("the kernel describes its types");
}

Finding probe_memory_lock() {
  // Counted against the cgroup since Linux 5.11, against RLIMIT_MEMLOCK before.
  constexpr std::uint32_t kBytes = 16 << 20;
  rlimit limit = {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const Fd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "rose_probe", 4, 4096, kBytes / 4096, nullptr));
  if (!map) return no_errno("creating a map of 16 MiB", errno);
  return yes(limit.rlim_cur > kBytes ? "a map of 16 MiB" : "a map of 16 MiB, beyond RLIMIT_MEMLOCK");
}

// ---------------------------------------------------------------- tracing programs

// Attaches a counting program to raw tracepoints, runs `act`, and looks whether it was counted.
Finding count_raw_tracepoint(const char* tracepoint, const std::function<void()>& act) {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_RAW_TRACEPOINT, count_and_return(counter, 0), error);
  if (!program) return no_errno("loading a raw tracepoint program", error);
  const Fd link(bpf_raw_tracepoint_open(tracepoint, program.get()));
  if (link.get() < 0) return no_errno(fmt::format("attaching to {}", tracepoint), errno);
  act();
  if (counter.value() == 0) return no(fmt::format("attached to {}, but it never fired", tracepoint));
  return yes(fmt::format("{} fires", tracepoint));
}

Finding probe_raw_tracepoint() {
  for (const char* name : {"sys_enter", "sys_exit"}) {
    Finding found = count_raw_tracepoint(name, [] { ::syscall(SYS_getppid); });
    if (!found.ok) return found;
  }
  return yes("sys_enter and sys_exit fire");
}

// A program sees the ids of the first PID namespace; what rose asks it about bears the ids of rose's own.
Finding probe_process_ids() {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_RAW_TRACEPOINT, count_calls_of(counter, ::getpid()), error);
  if (!program) return no_errno("loading a raw tracepoint program", error);
  const Fd link(bpf_raw_tracepoint_open("sys_enter", program.get()));
  if (link.get() < 0) return no_errno("attaching to sys_enter", errno);
  ::syscall(SYS_getppid);
  if (counter.value() == 0) return no("rose lives in a PID namespace of its own, where processes bear other ids than the kernel's programs see");
  return yes("kernel programs see the process ids that rose sees");
}

Finding probe_process_tracepoints() {
  const auto live = [] {
    Child child([](int) { return 0; });
    if (child.started()) child.wait(kPatienceMs);
  };
  for (const char* name : {"sched_process_fork", "sched_process_exit"}) {
    Finding found = count_raw_tracepoint(name, live);
    if (!found.ok) return found;
  }
  Finding found = count_raw_tracepoint("signal_generate", [] {
    Child child([](int socket) { return wait_for_parent(socket) ? 0 : 1; });
    if (child.started()) ::kill(child.pid(), SIGKILL);
    if (child.started()) child.wait(kPatienceMs);
  });
  if (!found.ok) return found;
  return yes("process beginnings, ends and signals fire");
}

Finding probe_io_uring_tracepoints() {
  int setup_error = 0;
  Finding found = count_raw_tracepoint("io_uring_create", [&] {
    io_uring_params parameters = {};
    const Fd ring(static_cast<int>(::syscall(SYS_io_uring_setup, 1, &parameters)));
    if (!ring) setup_error = errno;
  });
  if (setup_error != 0 && !found.ok && found.error == 0) {
    return no_errno("io_uring itself is switched off: io_uring_setup", setup_error);
  }
  return found;
}

int on_record(void* context, void* data, std::size_t size) {
  if (size == 8) std::memcpy(context, data, 8);
  return 0;
}

Finding probe_ring_buffer() {
  constexpr std::uint64_t kRecord = 0x726f7365'70726f62;
  const Fd map(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "rose_probe", 0, 0, static_cast<__u32>(::getpagesize()), nullptr));
  if (map.get() < 0) return no_errno("creating a ring buffer", errno);
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_RAW_TRACEPOINT, output_to_ring(map.get(), kRecord), error);
  if (!program) return no_errno("loading a program that writes to it", error);
  std::uint64_t seen = 0;
  ring_buffer* ring = ring_buffer__new(map.get(), on_record, &seen, nullptr);
  if (ring == nullptr) return no_errno("mapping the ring buffer", errno);
  {
    const Fd link(bpf_raw_tracepoint_open("sys_exit", program.get()));
    if (link.get() < 0) error = errno;
    ::syscall(SYS_getppid);
  }
  ring_buffer__consume(ring);
  ring_buffer__free(ring);
  if (error != 0) return no_errno("attaching to sys_exit", error);
  if (seen != kRecord) return no("no record arrived");
  return yes("records arrive");
}

// Places of our own to put probes on. Each has bytes of its own, so that the linker cannot fold them.
extern "C" {
[[gnu::noinline, gnu::used]] int rose_probe_single(int x) {
  asm volatile("" : "+r"(x));
  return x + 11;
}
[[gnu::noinline, gnu::used]] int rose_probe_multi(int x) {
  asm volatile("" : "+r"(x));
  return x + 22;
}
[[gnu::noinline, gnu::used]] int rose_probe_kill(int x) {
  asm volatile("" : "+r"(x));
  return x + 33;
}
}

Finding probe_uprobe() {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, count_and_return(counter, 0), error);
  if (!program) return no_errno("loading a uprobe program", error);
  Fd event;
  Finding found = attach_perf("uprobe", kSelf, own_offset(reinterpret_cast<const void*>(&rose_probe_single)), -1,
                              program.get(), event);
  if (!found.ok) return found;
  rose_probe_single(1);
  if (counter.value() == 0) return no("attached to a function of our own, but it was not seen");
  return yes("a function of our own was seen");
}

Finding probe_uprobe_multi() {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, count_and_return(counter, 0), error, 48 /* BPF_TRACE_UPROBE_MULTI */);
  if (!program) return no_errno("loading a uprobe_multi program", error);
  const Fd link = create_uprobe_multi_link(program.get(), kSelf,
                                           own_offset(reinterpret_cast<const void*>(&rose_probe_multi)));
  if (!link) return no_errno("creating a uprobe_multi link", errno);
  rose_probe_multi(1);
  if (counter.value() == 0) return no("attached to a function of our own, but it was not seen");
  return yes("a function of our own was seen");
}

Finding probe_send_signal() {
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, send_kill(), error);
  if (!program) return no_errno("loading a program that sends signals", error);
  Child child([](int socket) {
    if (!wait_for_parent(socket)) return 1;
    return rose_probe_kill(1) == 34 ? 0 : 1;
  });
  if (!child.started()) return no("no child could be started");
  Fd event;
  // Of the child alone: the same function of another rose must not die.
  Finding found = attach_perf("uprobe", kSelf, own_offset(reinterpret_cast<const void*>(&rose_probe_kill)),
                              child.pid(), program.get(), event);
  if (!found.ok) return found;
  child.release();
  const int status = child.wait(kPatienceMs);
  if (status < 0) return no("the process neither died nor ended");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return yes("a process died at the function it entered");
  return no("the process ran on");
}

// A status of the child, traced or not, within the time; -1 otherwise.
int next_status(pid_t pid) {
  for (int waited_ms = 0; waited_ms < kPatienceMs; ++waited_ms) {
    int status = 0;
    const pid_t got = ::waitpid(pid, &status, WNOHANG | __WALL);
    if (got == pid) return status;
    if (got < 0 && errno != EINTR) return -1;
    ::usleep(1000);
  }
  return -1;
}

// What src/inject/holder.cc does.
Finding probe_hold_thread() {
  const auto request = [](int what) { return static_cast<__ptrace_request>(what); };
  Child child([](int socket) { return wait_for_parent(socket) ? 34 : 1; });
  if (!child.started()) return no("no child could be started");
  if (::ptrace(request(PTRACE_SEIZE), child.pid(), nullptr, nullptr) != 0) return no_errno("tracing a child (PTRACE_SEIZE)", errno);
  ::kill(child.pid(), SIGSTOP);
  int status = next_status(child.pid());
  if (status < 0 || !WIFSTOPPED(status) || status >> 16 != 0) return no("a traced thread did not stop at its signal");
  if (::ptrace(request(PTRACE_INTERRUPT), child.pid(), nullptr, nullptr) != 0 || ::ptrace(PTRACE_CONT, child.pid(), nullptr, nullptr) != 0)
    return no_errno("holding a traced thread", errno);
  status = next_status(child.pid());
  if (status < 0 || !WIFSTOPPED(status) || status >> 16 != PTRACE_EVENT_STOP) return no("a traced thread did not stay stopped");
  if (::ptrace(PTRACE_DETACH, child.pid(), nullptr, nullptr) != 0) return no_errno("letting a traced thread go", errno);
  child.release();
  status = child.wait(kPatienceMs);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 34) return no("a thread that was held did not go on");
  return yes("a thread stood still and went on");
}

constexpr std::uint64_t kOverrideMark = 0x726f7365;

Finding probe_kprobe() {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, count_and_return(counter, 0), error);
  if (!program) return no_errno("loading a kprobe program", error);
  Fd event;
  Finding found = attach_perf("kprobe", "__x64_sys_sched_get_priority_max", 0, -1, program.get(), event);
  if (!found.ok) return found;
  ::syscall(SYS_sched_get_priority_max, kOverrideMark);
  if (counter.value() == 0) return no("attached to a kernel function, but it was not seen");
  return yes("a kernel function was seen");
}

Finding probe_override_return() {
  // Answers only a call with an argument that nobody else uses: the probe sees the whole machine.
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, override_when(kOverrideMark, EXFULL), error);
  if (!program) return no_errno("loading a program that calls bpf_override_return", error);
  Fd event;
  Finding found = attach_perf("kprobe", "__x64_sys_sched_get_priority_max", 0, -1, program.get(), event);
  if (!found.ok) return found;
  errno = 0;
  if (::syscall(SYS_sched_get_priority_max, kOverrideMark) == -1 && errno == EXFULL) {
    return yes("a system call returned the error it was told to");
  }
  return no("attached, but the system call was not overridden");
}

// ---------------------------------------------------------------- seccomp and descriptors

constexpr unsigned kWaitKillable = 1U << 5;                                  // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
constexpr unsigned long kSetFlags = _IOW('!', 4, std::uint64_t);             // SECCOMP_IOCTL_NOTIF_SET_FLAGS
constexpr std::uint64_t kSyncWakeUp = 1;                                     // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP

// In the child: installs a filter that asks about openat, hands the listener over, and opens a file. 0: EIO.
int seccomp_child(int socket, unsigned flags) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  // Without CAP_SYS_ADMIN only this allows a filter.
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
  // Kernels may use more bytes than our header knows.
  alignas(seccomp_notif) char request_bytes[4096] = {};
  alignas(seccomp_notif_resp) char answer_bytes[4096] = {};
  auto* request = reinterpret_cast<seccomp_notif*>(request_bytes);
  auto* answer = reinterpret_cast<seccomp_notif_resp*>(answer_bytes);
  if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, request) != 0) return no_errno("receiving the notification", errno);
  answer->id = request->id;
  answer->error = -EIO;
  if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, answer) != 0) return no_errno("answering it", errno);
  const int status = child.wait(kPatienceMs);
  if (status < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return no("the answer did not reach the process");
  return yes("openat was answered with EIO");
}

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

// ---------------------------------------------------------------- cgroups

// A cgroup of our own, removed with all that is in it.
class TemporaryCgroup {
 public:
  TemporaryCgroup() {
    const auto mount = cgroup2_mount();
    if (!mount) return;
    std::string pattern = mount->string() + "/rose-probe-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      error_ = errno;
      return;
    }
    path_ = pattern;
    fd_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  TemporaryCgroup(const TemporaryCgroup&) = delete;
  TemporaryCgroup& operator=(const TemporaryCgroup&) = delete;
  ~TemporaryCgroup() {
    if (path_.empty()) return;
    // A process that was just reaped may be charged for an instant longer.
    const std::int64_t end = monotonic_ns() + 1'000'000'000;
    while (::rmdir(path_.c_str()) != 0 && errno == EBUSY && monotonic_ns() < end) ::usleep(1000);
  }
  [[nodiscard]] bool ok() const { return !path_.empty() && fd_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string name() const { return path_.substr(path_.rfind('/') + 1); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] Finding failure() const {
    if (error_ != 0) return no_errno("making a cgroup", error_);
    return no("no cgroup v2 file system is mounted");
  }

 private:
  std::string path_;
  Fd fd_;
  int error_ = 0;
};

Finding probe_cgroup2() {
  const auto mount = cgroup2_mount();
  if (!mount) return no("no cgroup v2 file system is mounted");
  const TemporaryCgroup cgroup;
  if (!cgroup.ok()) return cgroup.failure();
  return yes(fmt::format("{}{}", mount->string(), cgroup1_mounted() ? " (hybrid layout)" : ""));
}

// A child that waits for us inside `cgroup`.
std::unique_ptr<Child> child_in(const TemporaryCgroup& cgroup, Finding& why) {
  auto child = std::make_unique<Child>([](int socket) { return wait_for_parent(socket) ? 0 : 1; });
  if (!child->started()) {
    why = no("no child could be started");
    return nullptr;
  }
  if (auto moved = write_control(cgroup.path() + "/cgroup.procs", std::to_string(child->pid())); !moved) {
    why = no(moved.error().message);
    return nullptr;
  }
  return child;
}

Finding probe_cgroup_kill() {
  const TemporaryCgroup cgroup;
  if (!cgroup.ok()) return cgroup.failure();
  Finding why;
  const auto child = child_in(cgroup, why);
  if (!child) return why;
  if (auto written = write_control(cgroup.path() + "/cgroup.kill", "1"); !written) return no(written.error().message);
  const int status = child->wait(kPatienceMs);
  if (status < 0 || !WIFSIGNALED(status)) return no("the process lives on");
  return yes("a cgroup was ended as one");
}

Finding probe_cgroup_freeze() {
  const TemporaryCgroup cgroup;
  if (!cgroup.ok()) return cgroup.failure();
  Finding why;
  const auto child = child_in(cgroup, why);
  if (!child) return why;
  if (auto written = write_control(cgroup.path() + "/cgroup.freeze", "1"); !written) return no(written.error().message);
  bool frozen = false;
  const std::int64_t end = monotonic_ns() + std::int64_t{kPatienceMs} * 1'000'000;
  while (!frozen && monotonic_ns() < end) {
    const auto events = read_file(cgroup.path() + "/cgroup.events", 4096);
    frozen = events && events->find("frozen 1") != std::string::npos;
    if (!frozen) ::usleep(500);
  }
  (void)write_control(cgroup.path() + "/cgroup.freeze", "0");
  if (!frozen) return no("the cgroup did not freeze in time");
  child->release();
  if (child->wait(kPatienceMs) != 0) return no("the process did not go on after the thaw");
  return yes("a cgroup was paused and went on");
}

Finding probe_clone_into_cgroup() {
  const TemporaryCgroup cgroup;
  if (!cgroup.ok()) return cgroup.failure();
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return no_errno("socketpair", errno);
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  clone_args arguments = {};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<__u64>(cgroup.fd());
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0) return no_errno("clone3 with CLONE_INTO_CGROUP", errno);
  if (pid == 0) {
    ::close(ours.get());  // else the read below would outlast our end
    char byte = 0;
    ::_exit(::read(theirs.get(), &byte, 1) == 1 ? 0 : 1);
  }
  theirs.reset();
  Child child(static_cast<pid_t>(pid), std::move(ours));
  const auto where = read_file(fmt::format("/proc/{}/cgroup", pid), 65536);
  if (!where || where->find(cgroup.name()) == std::string::npos) return no("the process began in another cgroup");
  return yes("a process began in its cgroup");
}

// A folder of the controller is made, a child moved there, limited, and let go of again.
Finding probe_controller(Controller controller, std::uint64_t amount) {
  const auto place = find_controller(controller);
  if (!place) return no(place.error().message);
  if (place->v2) {
    if (auto passed = pass_on(controller, place->base, place->base); !passed) return no(passed.error().message);
  }
  std::string folder = place->base.string() + "/rose-probe-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return no_errno(fmt::format("making a cgroup in {}", place->base.string()), errno);
  Finding found = [&] {
    Child child([](int socket) { return wait_for_parent(socket) ? 0 : 1; });
    if (!child.started()) return no("no child could be started");
    if (auto moved = write_control(folder + "/cgroup.procs", std::to_string(child.pid())); !moved) return no(moved.error().message);
    if (const int error = write_all(folder, limited(controller, place->v2, amount)); error != 0) return no_errno("setting a limit", error);
    const bool kept = in_force(folder, controller, place->v2, amount);
    if (const int error = write_all(folder, unlimited(controller, place->v2)); error != 0) return no_errno("lifting a limit", error);
    child.release();
    child.wait(kPatienceMs);
    if (!kept) return no("a limit was set, but is not kept");
    return yes(fmt::format("a limit was set in {}", place->base.string()));
  }();
  const std::int64_t end = monotonic_ns() + 1'000'000'000;
  while (::rmdir(folder.c_str()) != 0 && errno == EBUSY && monotonic_ns() < end) ::usleep(1000);
  return found;
}

Finding probe_memory_controller() { return probe_controller(Controller::memory, 16U << 20); }
Finding probe_cpu_controller() { return probe_controller(Controller::cpu, 50'000); }

// Sends a datagram to ourselves over loopback.
bool send_to_self() {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::sendto(socket.get(), "rose", 4, 0, reinterpret_cast<sockaddr*>(&address), size) != 4) {
    return false;
  }
  // Delivered, or dropped by someone: we only need it to have passed.
  (void)wait_readable(socket.get(), 50);
  return true;
}

Finding probe_cgroup_skb() {
  const TemporaryCgroup cgroup;
  if (!cgroup.ok()) return cgroup.failure();
  for (const auto& [type, name] : {std::pair{BPF_CGROUP_INET_INGRESS, "ingress"}, {BPF_CGROUP_INET_EGRESS, "egress"}}) {
    const Counter counter;
    if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
    int error = 0;
    const Fd program = load(BPF_PROG_TYPE_CGROUP_SKB, count_and_return(counter, 1), error, type);
    if (!program) return no_errno("loading a cgroup packet program", error);
    const Fd link(bpf_link_create(program.get(), cgroup.fd(), type, nullptr));
    if (link.get() < 0) return no_errno(fmt::format("attaching to a cgroup's {}", name), errno);
    Child child([](int socket) {
      if (!wait_for_parent(socket)) return 1;
      return send_to_self() ? 0 : 2;  // the socket belongs to the cgroup it is made in
    });
    if (!child.started()) return no("no child could be started");
    if (auto moved = write_control(cgroup.path() + "/cgroup.procs", std::to_string(child.pid())); !moved) {
      return no(moved.error().message);
    }
    child.release();
    if (child.wait(kPatienceMs) != 0) return no("no packet could be sent over loopback");
    if (counter.value() == 0) return no(fmt::format("attached to a cgroup's {}, but no packet was seen", name));
  }
  return yes("a cgroup's packets were seen both ways");
}

// ---------------------------------------------------------------- network

constexpr int kLoopback = 1;  // the first interface of every namespace

// Runs `body` in a network namespace of its own, with loopback up, in a child; all of it vanishes with the child.
Finding in_namespace(const std::function<Finding()>& body) {
  Child child([&body](int socket) {
    const auto found = [&body] {
      if (::unshare(CLONE_NEWNET) != 0) return no_errno("making a network namespace", errno);
      if (const int error = Netlink().up(kLoopback); error != 0) return no_errno("setting its loopback up", error);
      return body();
    }();
    const std::string text = fmt::format("{} {} {}", found.ok ? 1 : 0, found.error, found.detail);
    return ::write(socket, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  });
  if (!child.started()) return no("no child could be started");
  if (!wait_readable(child.socket(), 2 * kPatienceMs)) return no("the probe did not answer in time");
  char text[1024];
  const ssize_t got = ::read(child.socket(), text, sizeof text);
  child.wait(kPatienceMs);
  if (got <= 0) return no("the probe ended without an answer");
  std::istringstream in(std::string(text, static_cast<std::size_t>(got)));
  Finding found;
  int ok = 0;
  in >> ok >> found.error;
  in.get();
  std::getline(in, found.detail);
  found.ok = ok == 1;
  return found;
}

Finding probe_netns() {
  return in_namespace([] {
    if (!send_to_self()) return no("no packet could be sent over loopback");
    return yes("a namespace of its own carries packets");
  });
}

Finding probe_veth() {
  return in_namespace([] {
    const int error = Netlink().add_veth("rose-pa", 0, "rose-pb", -1);
    if (error != 0) return no_errno("making a veth pair", error);
    return yes("a pair was made");
  });
}

Finding probe_bridge() {
  return in_namespace([] {
    Netlink netlink;
    if (const int error = netlink.add_bridge("rose-pbr"); error != 0) return no_errno("making a bridge", error);
    const int error = netlink.add_veth("rose-pa", static_cast<int>(::if_nametoindex("rose-pbr")), "rose-pb", -1);
    if (error != 0) return no_errno("putting an interface into the bridge", error);
    return yes("a bridge took an interface");
  });
}

// Loads a counting program, attaches it to loopback as `attach` says, sends a packet, looks at the count.
Finding count_packets(bpf_prog_type type, int result, int expected, const std::function<Finding(int program)>& attach,
                      const std::function<void()>& detach = {}) {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(type, count_and_return(counter, result), error, expected);
  if (!program) return no_errno("loading a packet program", error);
  Finding found = attach(program.get());
  if (!found.ok) return found;
  const bool sent = send_to_self();
  const std::uint64_t seen = counter.value();
  if (detach) detach();
  if (!sent) return no("no packet could be sent over loopback");
  if (seen == 0) return no("attached, but no packet was seen");
  return yes("packets were seen");
}

Finding probe_tcx() {
  return in_namespace([] {
    Fd link;
    return count_packets(BPF_PROG_TYPE_SCHED_CLS, 0, 0, [&link](int program) {
      link = create_tcx_link(program, kLoopback);
      return link ? yes("") : no_errno("creating a TCX link", errno);
    });
  });
}

Finding probe_clsact() {
  return in_namespace([] {
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = kLoopback, .attach_point = BPF_TC_INGRESS);
    return count_packets(
        BPF_PROG_TYPE_SCHED_CLS, 0, 0,
        [&hook](int program) {
          if (const int error = bpf_tc_hook_create(&hook); error != 0) return no_errno("adding a clsact qdisc", -error);
          LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program);
          if (const int error = bpf_tc_attach(&hook, &options); error != 0) return no_errno("adding a filter", -error);
          return yes("");
        },
        [&hook] {
          hook.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
          bpf_tc_hook_destroy(&hook);
        });
  });
}

Finding probe_xdp() {
  return in_namespace([] {
    Fd link;
    return count_packets(BPF_PROG_TYPE_XDP, XDP_PASS, BPF_XDP, [&link](int program) {
      LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_SKB_MODE);
      link = Fd(bpf_link_create(program, kLoopback, BPF_XDP, &options));
      if (link.get() < 0) return no_errno("attaching an XDP program", errno);
      return yes("");
    });
  });
}

Finding probe_ip_command() {
  const auto output = run_command({"ip", "-V"}, {}, 2'000'000'000);
  if (!output) return no(output.error().message);
  if (output->exit_code != 0) return no(fmt::format("`ip -V` exits {}", output->exit_code));
  std::string text = output->out + output->err;
  return yes(text.substr(0, text.find('\n')));
}

// ---------------------------------------------------------------- the table

struct Probe {
  const char* name;
  Finding (*run)();
  bool required;
  const char* with;     // what follows when it is there
  const char* without;  // what follows when it is not
  const char* remedy;   // of the kernel or system, when privilege is not what lacks
};

constexpr const char* kTooOld = "use Linux 5.11 or newer with CONFIG_BPF_SYSCALL";

constexpr Probe kProbes[] = {
    {"root", probe_root, false, "", "most commands need root; --help, dump and diagnose --plan do not",
     "run rose as root: sudo rose ..."},
    {"capabilities", probe_capabilities, true, "", "commands that start, trace or inject fail",
     "run rose as root; start a container it runs in with --privileged"},
    {"architecture", probe_architecture, true, "", "rose knows the system calls of x86-64 only", "use an x86-64 machine"},
    {"kernel_btf", probe_btf, true, "the tracer fits its programs to this kernel", "the tracer cannot read kernel structures",
     "use a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's and Ubuntu's have it)"},
    {"memory_lock", probe_memory_lock, false, "BPF memory is not limited by ulimit",
     "large windows of the tracer may be refused", "raise it: ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit"},
    {"raw_tracepoint", probe_raw_tracepoint, true, "system calls are traced", "system calls cannot be traced", kTooOld},
    {"process_ids", probe_process_ids, true, "", "processes cannot be told apart: nothing is traced or injected",
     "run rose in the machine's PID namespace: docker run --pid=host, hostPID in Kubernetes, or nsenter --target 1 --pid"},
    {"process_tracepoints", probe_process_tracepoints, true, "crashes and exits are traced",
     "crashes and exits cannot be traced", kTooOld},
    {"io_uring_tracepoints", probe_io_uring_tracepoints, false, "failures of io_uring's operations are traced",
     "failures of io_uring's operations are not traced",
     "use a kernel with CONFIG_IO_URING; if it is switched off: sysctl kernel.io_uring_disabled=0"},
    {"ring_buffer", probe_ring_buffer, true, "events reach the tracer", "events cannot reach the tracer",
     "use Linux 5.8 or newer"},
    {"uprobe", probe_uprobe, false, "functions are traced", "application functions cannot be traced or used as conditions",
     "use a kernel with CONFIG_UPROBE_EVENTS=y"},
    {"uprobe_multi", probe_uprobe_multi, false, "thousands of functions attach at once",
     "functions attach one by one through perf events, and letting go of many takes long", "use Linux 6.6 or newer"},
    {"send_signal", probe_send_signal, false, "crashes and pauses fire at the very instruction",
     "crashes and pauses with conditions do not fire", "use Linux 5.3 or newer with CONFIG_UPROBE_EVENTS=y"},
    {"hold_thread", probe_hold_thread, false, "a thread can wait at a function while the others go on", "block faults at functions are refused",
     "give rose CAP_SYS_PTRACE; if it is forbidden: sysctl kernel.yama.ptrace_scope=1"},
    {"kprobe", probe_kprobe, false, "", "nothing of rose needs it but override_return", "use a kernel with CONFIG_KPROBES=y"},
    {"override_return", probe_override_return, false, "syscall faults could do without the seccomp backend, which rose uses",
     "syscall faults use the seccomp backend",
     "not needed; if wanted, use a kernel with CONFIG_KPROBES, CONFIG_FUNCTION_ERROR_INJECTION and CONFIG_BPF_KPROBE_OVERRIDE"},
    {"seccomp_notify", probe_seccomp_notify, true, "the seccomp backend of syscall faults works",
     "syscall faults cannot be injected",
     "use Linux 5.0 or newer with CONFIG_SECCOMP_FILTER; a container must not have a listener of its own"},
    {"seccomp_wait_killable", probe_seccomp_wait_killable, false, "signals do not make calls count twice",
     "calls that a signal interrupts may be counted twice (Go preempts with signals)", "use Linux 5.19 or newer"},
    {"seccomp_sync_wake_up", probe_seccomp_sync_wake_up, false, "a watched call costs less",
     "a watched call costs about four times as much", "use Linux 6.6 or newer"},
    {"pidfd_getfd", probe_pidfd_getfd, false, "rose can answer for a node, and carry out part of a call",
     "syscall faults cannot be injected", "use Linux 5.6 or newer"},
    {"cgroup2", probe_cgroup2, true, "each node has a cgroup", "nodes cannot be told apart",
     "mount it: mount -t cgroup2 none /sys/fs/cgroup/unified"},
    {"cgroup_kill", probe_cgroup_kill, false, "a node dies as one", "a node is frozen and its processes are killed one by one",
     "use Linux 5.14 or newer"},
    {"cgroup_freeze", probe_cgroup_freeze, false, "a node pauses as one", "nodes cannot be paused",
     "use Linux 5.2 or newer"},
    {"clone_into_cgroup", probe_clone_into_cgroup, true, "a node is in its cgroup from its first instruction",
     "nodes cannot be started", "use Linux 5.7 or newer"},
    {"cgroup_skb", probe_cgroup_skb, false, "silences are traced at the nodes' sockets",
     "silences are traced with --interface only, and partitions need network = \"netns\"", "use a kernel with CONFIG_CGROUP_BPF=y"},
    {"memory_controller", probe_memory_controller, false, "memory faults work", "memory faults are refused",
     "use a kernel with CONFIG_MEMCG; beside v1 hierarchies mount this one: mkdir -p /sys/fs/cgroup/memory && mount -t cgroup -o memory none "
     "/sys/fs/cgroup/memory"},
    {"cpu_controller", probe_cpu_controller, false, "cpu faults work", "cpu faults are refused",
     "use a kernel with CONFIG_CFS_BANDWIDTH; beside v1 hierarchies mount this one: mkdir -p /sys/fs/cgroup/cpu && mount -t cgroup -o cpu none "
     "/sys/fs/cgroup/cpu"},
    {"netns", probe_netns, false, "nodes have networks of their own",
     "only deployments with network = \"host\" run, without partitions", "use a kernel with CONFIG_NET_NS=y"},
    {"veth", probe_veth, false, "", "only deployments with network = \"host\" run, without partitions",
     "use a kernel with CONFIG_VETH (modprobe veth)"},
    {"bridge", probe_bridge, false, "nodes reach one another", "only deployments with network = \"host\" run, without partitions",
     "use a kernel with CONFIG_BRIDGE (modprobe bridge)"},
    {"tcx", probe_tcx, false, "partitions vanish with rose, even when it is killed",
     "partitions use clsact filters, which `rose heal` removes after a kill", "use Linux 6.6 or newer"},
    {"clsact", probe_clsact, false, "partitions work without TCX links too", "partitions need TCX links",
     "use a kernel with CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS (modprobe sch_ingress cls_bpf)"},
    {"xdp", probe_xdp, false, "", "`trace --interface` needs TCX links", "use Linux 5.9 or newer"},
    {"ip_command", probe_ip_command, false, "", "rose works; incidents and workloads that use `ip` do not",
     "apt-get install iproute2"},
};

bool lacks_privilege(int error) {
  return (error == EPERM || error == EACCES) && !missing_capabilities(false).empty();
}

std::string privilege_remedy() {
  return fmt::format("{}; it lacks {}",
                     ::geteuid() == 0 ? "start the container that rose runs in with --privileged" : "run rose as root",
                     missing_capabilities(false));
}

Capability answer(const Probe& entry) {
  Capability capability;
  capability.name = entry.name;
  capability.required = entry.required;
  Finding found = masked(entry.name) ? no("masked by ROSE_MASK") : entry.run();
  capability.ok = found.ok;
  capability.untried = !found.ok && found.error != 0;
  const std::string_view follows = found.ok ? entry.with : entry.without;
  capability.detail = std::move(found.detail);
  if (!follows.empty()) capability.detail += fmt::format("{}{}", capability.detail.empty() ? "" : "; ", follows);
  if (found.ok) return capability;
  capability.remedy = masked(entry.name)              ? "unset ROSE_MASK"
                      : lacks_privilege(found.error) ? privilege_remedy()
                                                     : entry.remedy;
  return capability;
}

}  // namespace

bool masked(std::string_view name) {
  const char* mask = std::getenv("ROSE_MASK");
  if (mask == nullptr) return false;
  const std::vector<std::string> names = split(mask, ',');
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> probe_names() {
  std::vector<std::string> names;
  for (const Probe& entry : kProbes) names.emplace_back(entry.name);
  return names;
}

std::vector<Capability> probe_all() {
  route_libbpf_log();
  std::vector<Capability> capabilities;
  for (const Probe& entry : kProbes) capabilities.push_back(answer(entry));
  return capabilities;
}

Capability probe(std::string_view name) {
  route_libbpf_log();
  for (const Probe& entry : kProbes) {
    if (name == entry.name) return answer(entry);
  }
  return {std::string(name), false, "no such capability", did_you_mean(name, probe_names()), false, false};
}

}  // namespace rose::kernel
