// Probes for tracing programs: tracepoints, probes on functions, and the helpers that such programs need.
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>

#include "base/clock.h"
#include "kernel/arch.h"
#include "kernel/maps.h"
#include "kernel/old_kernel.h"
#include "kernel/probe_child.h"
#include "kernel/probes.h"

namespace rose::kernel::probing {
namespace {

// The kernel's function of a system call that programs rarely make, so that a probe on it disturbs no other program.
std::string some_call() { return fmt::format("{}sched_get_priority_max", kCallPrefix); }

constexpr const char* kSelf = "/proc/self/exe";

// Attaches a counting program to a raw tracepoint, runs `act` and checks that the program counted an event.
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

}  // namespace

Finding probe_raw_tracepoint() {
  for (const char* name : {"sys_enter", "sys_exit"}) {
    Finding found = count_raw_tracepoint(name, [] { ::syscall(SYS_getppid); });
    if (!found.ok) return found;
  }
  return yes("sys_enter and sys_exit fire");
}

// BPF programs see process ids of the initial PID namespace, whereas rose passes them the ids of its own namespace.
Finding probe_process_ids() {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_RAW_TRACEPOINT, count_calls_of(counter, ::getpid()), error);
  if (!program) return no_errno("loading a raw tracepoint program", error);
  const Fd link(bpf_raw_tracepoint_open("sys_enter", program.get()));
  if (link.get() < 0) return no_errno("attaching to sys_enter", errno);
  ::syscall(SYS_getppid);
  if (counter.value() == 0)
    return no("rose is in its own PID namespace, in which process ids differ from those that BPF programs see");
  return yes("BPF programs see the same process ids as rose");
}

Finding probe_event_clock() {
  // Times are in units of 2^20 ns, because the result of a program has 32 bits.
  constexpr int kUnit = 20;
  constexpr std::uint32_t kMost = 50;  // about 50 ms, because this thread may have to wait for a processor
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_SOCKET_FILTER, clock_in_units(kUnit), error);
  if (!program) return no_errno("loading a program that reads the clock", error);
  char data[64] = {};
  std::uint32_t off = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = data, .data_size_in = sizeof data, .repeat = 1);
    const auto before = static_cast<std::uint64_t>(monotonic_ns()) >> kUnit;
    if (bpf_prog_test_run_opts(program.get(), &run) != 0)
      return no_errno("running a program that reads the clock", errno);
    const auto after = static_cast<std::uint64_t>(monotonic_ns()) >> kUnit;
    off = run.retval - static_cast<std::uint32_t>(before);
    if (after - before > kMost) continue;  // the measurement took too long to be exact
    if (off <= after - before + 1 || off == UINT32_MAX) {
      const std::int64_t offset = time_offsets().monotonic_ns;
      return yes(offset == 0 ? "kernel programs read the clock that rose reads"
                             : fmt::format("kernel programs read the machine's clock; rose is in a time namespace that "
                                           "is {} s off, and corrects for that",
                                           offset / 1'000'000'000));
    }
  }
  return no(
      fmt::format("the clock that kernel programs read differs from rose's clock by {:.1f} s (or by that and 52 days), "
                  "and /proc/self/timens_offsets does not explain the difference",
                  static_cast<double>(static_cast<std::int32_t>(off)) * (1 << kUnit) / 1e9));
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

namespace {

int on_record(void* context, void* data, std::size_t size) {
  if (size == 8) std::memcpy(context, data, 8);
  return 0;
}

}  // namespace

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

Finding probe_loop() {
  // The kernel requires the types of a program with callbacks.
  const std::unique_ptr<btf, decltype(&btf__free)> types(btf__new_empty(), btf__free);
  const int number = btf__add_int(types.get(), "int", 4, BTF_INT_SIGNED);
  const int signature = btf__add_func_proto(types.get(), number);
  const int caller = btf__add_func(types.get(), "rose_probe", BTF_FUNC_GLOBAL, signature);
  const int step = btf__add_func(types.get(), "rose_step", BTF_FUNC_STATIC, signature);
  if (const int failed = btf__load_into_kernel(types.get()); failed != 0)
    return no_errno("loading the types of a program", -failed);
  const Code code = loop_once();
  const bpf_func_info functions[] = {{0, static_cast<__u32>(caller)}, {kLoopStep, static_cast<__u32>(step)}};
  LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_btf_fd = static_cast<__u32>(btf__fd(types.get())));
  options.func_info = functions;
  options.func_info_cnt = std::size(functions);
  options.func_info_rec_size = sizeof functions[0];
  const Fd program(
      bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "rose_probe", "GPL", code.data(), code.size(), &options));
  if (program.get() < 0) return no_errno("loading a program that calls bpf_loop", errno);
  return yes("a program may call bpf_loop");
}

namespace {

// Functions to probe. Their bodies differ so that the linker cannot merge them.
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

}  // namespace

Finding probe_uprobe() {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, count_and_return(counter, 0), error);
  if (!program) return no_errno("loading a uprobe program", error);
  Fd event;
  Finding found = attach_perf("uprobe", kSelf, own_place(reinterpret_cast<const void*>(&rose_probe_single)).offset, -1,
                              program.get(), event);
  if (!found.ok) return found;
  rose_probe_single(1);
  if (counter.value() == 0) return no("attached to a function of rose, but its call was not seen");
  return yes("a call of rose's own function was seen");
}

Finding probe_uprobe_multi() {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, count_and_return(counter, 0), error, 48 /* BPF_TRACE_UPROBE_MULTI */);
  if (!program) return no_errno("loading a uprobe_multi program", error);
  const Fd link = create_uprobe_multi_link(program.get(), kSelf,
                                           own_place(reinterpret_cast<const void*>(&rose_probe_multi)).offset);
  if (!link) return no_errno("creating a uprobe_multi link", errno);
  rose_probe_multi(1);
  if (counter.value() == 0) return no("attached to a function of rose, but its call was not seen");
  return yes("a call of rose's own function was seen");
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
  // Attach to the child only, because a probe on all processes could kill another rose that runs the same function.
  Finding found = attach_perf("uprobe", kSelf, own_place(reinterpret_cast<const void*>(&rose_probe_kill)).offset,
                              child.pid(), program.get(), event);
  if (!found.ok) return found;
  child.release();
  const int status = child.wait(kPatienceMs);
  if (status < 0) return no("the process neither died nor ended");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return yes("a process was killed at the function it entered");
  return no("the process continued");
}

namespace {

// The child's next status, traced or not; -1 after a timeout.
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

}  // namespace

// Tries the steps with which src/inject/holder.cc holds a thread.
Finding probe_hold_thread() {
  const auto request = [](int what) { return static_cast<__ptrace_request>(what); };
  Child child([](int socket) { return wait_for_parent(socket) ? 34 : 1; });
  if (!child.started()) return no("no child could be started");
  if (::ptrace(request(PTRACE_SEIZE), child.pid(), nullptr, nullptr) != 0)
    return no_errno("tracing a child (PTRACE_SEIZE)", errno);
  ::kill(child.pid(), SIGSTOP);
  int status = next_status(child.pid());
  if (status < 0 || !WIFSTOPPED(status) || status >> 16 != 0) return no("a traced thread did not stop at its signal");
  if (::ptrace(request(PTRACE_INTERRUPT), child.pid(), nullptr, nullptr) != 0 ||
      ::ptrace(PTRACE_CONT, child.pid(), nullptr, nullptr) != 0)
    return no_errno("holding a traced thread", errno);
  status = next_status(child.pid());
  if (status < 0 || !WIFSTOPPED(status) || status >> 16 != PTRACE_EVENT_STOP)
    return no("a traced thread did not stay stopped");
  if (::ptrace(PTRACE_DETACH, child.pid(), nullptr, nullptr) != 0) return no_errno("releasing a traced thread", errno);
  child.release();
  status = child.wait(kPatienceMs);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 34) return no("a thread that was held did not continue");
  return yes("a thread was held and continued");
}

namespace {

constexpr std::uint64_t kOverrideMark = 0x726f7365;

}  // namespace

Finding probe_kprobe() {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, count_and_return(counter, 0), error);
  if (!program) return no_errno("loading a kprobe program", error);
  Fd event;
  Finding found = attach_perf("kprobe", some_call().c_str(), 0, -1, program.get(), event);
  if (!found.ok) return found;
  ::syscall(SYS_sched_get_priority_max, kOverrideMark);
  if (counter.value() == 0) return no("attached to a kernel function, but its call was not seen");
  return yes("a call of a kernel function was seen");
}

Finding probe_override_return() {
  // The probe affects the whole machine, so it answers only a call with an argument that no other program uses.
  int error = 0;
  const Fd program = load(BPF_PROG_TYPE_KPROBE, override_when(kOverrideMark, EXFULL), error);
  if (!program) return no_errno("loading a program that calls bpf_override_return", error);
  Fd event;
  Finding found = attach_perf("kprobe", some_call().c_str(), 0, -1, program.get(), event);
  if (!found.ok) return found;
  errno = 0;
  if (::syscall(SYS_sched_get_priority_max, kOverrideMark) == -1 && errno == EXFULL) {
    return yes("a system call returned the requested error");
  }
  return no("attached, but the system call was not overridden");
}

}  // namespace rose::kernel::probing
