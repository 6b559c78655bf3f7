#include "kernel/probe.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "kernel/arch.h"
#include "kernel/attach.h"
#include "kernel/old_kernel.h"
#include "kernel/privilege.h"
#include "kernel/probes.h"

namespace rose::kernel {
namespace {

using namespace probing;  // NOLINT: private helpers of the probes

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
  return yes("all that rose needs");
}

Finding probe_architecture() {
  utsname name = {};
  ::uname(&name);
  const std::string found = fmt::format("Linux {} on {}", name.release, name.machine);
  return name.machine == kMachine ? yes(found) : no(found);
}

Finding probe_btf() {
  const Fd file(::open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC));
  if (!file) return no_errno("opening /sys/kernel/btf/vmlinux", errno);
  std::uint16_t magic = 0;
  if (::read(file.get(), &magic, sizeof magic) != sizeof magic || magic != 0xeb9f) {
    return no("/sys/kernel/btf/vmlinux holds no BTF");
  }
  return yes("the kernel provides BTF");
}

Finding probe_memory_lock() {
  // Since Linux 5.11, the memory of maps is charged to the cgroup. Before, it counted towards RLIMIT_MEMLOCK.
  constexpr std::uint32_t kBytes = 16 << 20;
  rlimit limit = {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const Fd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "rose_probe", 4, 4096, kBytes / 4096, nullptr));
  if (!map) return no_errno("creating a map of 16 MiB", errno);
  return yes(limit.rlim_cur > kBytes ? "a map of 16 MiB" : "a map of 16 MiB, beyond RLIMIT_MEMLOCK");
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
  const char* with;     // the consequence if the feature is available
  const char* without;  // the consequence if it is not
  const char* remedy;   // what to change in the kernel or system, if the cause is not a missing privilege
};

constexpr const char* kTooOld = "use Linux 5.10 or newer with CONFIG_BPF_SYSCALL";

constexpr Probe kProbes[] = {
    {"root", probe_root, false, "", "most commands need root; --help, dump and diagnose --plan do not",
     "run rose as root: sudo rose ..."},
    {"capabilities", probe_capabilities, true, "", "commands that start, trace or inject fail",
     "run rose as root; if it runs in a container, start that container with --privileged"},
    {"architecture", probe_architecture, true, "", "this rose was built for another processor",
     "use the rose that was built for this machine: there is one for x86-64 and one for arm64"},
    {"kernel_btf", probe_btf, true, "the tracer adapts its BPF programs to this kernel",
     "the tracer cannot read kernel structures",
     "use a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's and Ubuntu's have it)"},
    {"memory_lock", probe_memory_lock, false, "BPF memory is not limited by ulimit",
     "large windows of the tracer may be refused",
     "raise the limit: ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit"},
    {"raw_tracepoint", probe_raw_tracepoint, true, "system calls are traced", "system calls cannot be traced", kTooOld},
    {"process_ids", probe_process_ids, true, "", "processes cannot be identified: nothing is traced or injected",
     "run rose in the machine's PID namespace: docker run --pid=host, hostPID in Kubernetes, or nsenter --target 1 "
     "--pid"},
    {"event_clock", probe_event_clock, true, "the times of events are right", "the times of all events would be wrong",
     "run rose outside of its time namespace: nsenter --target 1 --time"},
    {"process_tracepoints", probe_process_tracepoints, true, "crashes and exits are traced",
     "crashes and exits cannot be traced", kTooOld},
    {"io_uring_tracepoints", probe_io_uring_tracepoints, false, "failures of io_uring's operations are traced",
     "failures of io_uring's operations are not traced",
     "use a kernel with CONFIG_IO_URING; if io_uring is switched off: sysctl kernel.io_uring_disabled=0"},
    {"ring_buffer", probe_ring_buffer, true, "events reach the tracer", "events cannot reach the tracer",
     "use Linux 5.8 or newer"},
    {"bpf_loop", probe_loop, false, "",
     "the BPF programs for Linux 5.10 to 5.16 are used, which record only the last 64 parts of a deep path, see no "
     "network delays on sockets that were open before, and do not name the file of a failed io_uring operation",
     "use Linux 5.17 or newer"},
    {"uprobe", probe_uprobe, false, "functions are traced",
     "application functions cannot be traced or used as conditions", "use a kernel with CONFIG_UPROBE_EVENTS=y"},
    {"uprobe_multi", probe_uprobe_multi, false, "thousands of functions are attached at once",
     "functions are attached one by one through perf events, and detaching many takes long", "use Linux 6.6 or newer"},
    {"send_signal", probe_send_signal, false, "crashes and pauses happen at the exact instruction",
     "crashes and pauses with conditions do not fire", "use Linux 5.3 or newer with CONFIG_UPROBE_EVENTS=y"},
    {"hold_thread", probe_hold_thread, false, "a thread can be held at a function while the others continue",
     "block faults at functions are refused",
     "give rose CAP_SYS_PTRACE; if Yama forbids tracing: sysctl kernel.yama.ptrace_scope=1"},
    {"kprobe", probe_kprobe, false, "", "only override_return needs kprobes", "use a kernel with CONFIG_KPROBES=y"},
    {"override_return", probe_override_return, false,
     "syscall faults can be injected in the kernel, without the seccomp backend",
     "syscall faults use the seccomp backend",
     "only attached nodes that 'rose exec' did not start need it: use a kernel with CONFIG_KPROBES, "
     "CONFIG_FUNCTION_ERROR_INJECTION and CONFIG_BPF_KPROBE_OVERRIDE"},
    {"seccomp_notify", probe_seccomp_notify, true, "the seccomp backend of syscall faults works",
     "syscall faults cannot be injected",
     "use Linux 5.0 or newer with CONFIG_SECCOMP_FILTER; if rose runs in a container, its seccomp profile must not "
     "have a listener"},
    {"seccomp_wait_killable", probe_seccomp_wait_killable, false, "signals do not make calls count twice",
     "calls that a signal interrupts may be counted twice (Go preempts with signals)", "use Linux 5.19 or newer"},
    {"seccomp_sync_wake_up", probe_seccomp_sync_wake_up, false, "a watched call costs less",
     "a watched call costs about four times as much", "use Linux 6.6 or newer"},
    {"pidfd_getfd", probe_pidfd_getfd, false, "rose can act in place of a node and carry out a part of a call",
     "syscall faults cannot be injected", "use Linux 5.6 or newer"},
    {"cgroup2", probe_cgroup2, true, "each node has its own cgroup", "nodes cannot be distinguished",
     "mount cgroup v2: mount -t cgroup2 none /sys/fs/cgroup/unified"},
    {"cgroup_kill", probe_cgroup_kill, false, "a node's processes are killed at once",
     "a node is frozen and its processes are killed one by one", "use Linux 5.14 or newer"},
    {"cgroup_freeze", probe_cgroup_freeze, false, "a node's processes are paused at once", "nodes cannot be paused",
     "use Linux 5.2 or newer"},
    {"clone_into_cgroup", probe_clone_into_cgroup, true, "a node is in its cgroup from its first instruction",
     "nodes cannot be started", "use Linux 5.7 or newer"},
    {"cgroup_skb", probe_cgroup_skb, false, "network delays are traced at the nodes' sockets",
     "network delays are traced only with --interface, and partitions need network = \"netns\"",
     "use a kernel with CONFIG_CGROUP_BPF=y"},
    {"memory_controller", probe_memory_controller, false, "memory faults work", "memory faults are refused",
     "use a kernel with CONFIG_MEMCG; if cgroup v1 is used, mount this controller: mkdir -p /sys/fs/cgroup/memory && "
     "mount -t cgroup -o memory none /sys/fs/cgroup/memory"},
    {"cpu_controller", probe_cpu_controller, false, "cpu faults work", "cpu faults are refused",
     "use a kernel with CONFIG_CFS_BANDWIDTH; if cgroup v1 is used, mount this controller: mkdir -p /sys/fs/cgroup/cpu "
     "&& mount -t cgroup -o cpu none /sys/fs/cgroup/cpu"},
    {"netns", probe_netns, false, "nodes have their own networks",
     "only deployments with network = \"host\" run, without partitions", "use a kernel with CONFIG_NET_NS=y"},
    {"veth", probe_veth, false, "", "only deployments with network = \"host\" run, without partitions",
     "use a kernel with CONFIG_VETH (modprobe veth)"},
    {"bridge", probe_bridge, false, "nodes can reach each other",
     "only deployments with network = \"host\" run, without partitions",
     "use a kernel with CONFIG_BRIDGE (modprobe bridge)"},
    {"tcx", probe_tcx, false, "partitions end when rose ends, even if it is killed",
     "partitions use clsact filters; if rose is killed, `rose heal` must remove them", "use Linux 6.6 or newer"},
    {"clsact", probe_clsact, false, "partitions work without TCX links too", "partitions need TCX links",
     "use a kernel with CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS (modprobe sch_ingress cls_bpf)"},
    {"xdp", probe_xdp, false, "", "`trace --interface` needs TCX links", "use Linux 5.18 or newer"},
    {"ip_command", probe_ip_command, false, "", "rose works; incidents and workloads that use `ip` do not",
     "apt-get install iproute2"},
};

bool lacks_privilege(int error) { return (error == EPERM || error == EACCES) && !missing_capabilities(false).empty(); }

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
  capability.remedy = masked(entry.name)             ? "unset ROSE_MASK"
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

bool is_old() {
  static const bool answer = [] {
    const Capability loop = probe("bpf_loop");
    // Without privilege, the probe fails on every kernel, so its result does not show whether the kernel is old.
    return !loop.ok && (masked("bpf_loop") || missing_capabilities(false).empty());
  }();
  return answer;
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
