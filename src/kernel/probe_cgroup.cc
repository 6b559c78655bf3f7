// Probes for cgroups: freezing, killing, both versions, and programs that see a cgroup's packets.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "kernel/cgroup2.h"
#include "kernel/controllers.h"
#include "kernel/probe_child.h"
#include "kernel/probes.h"

namespace rose::kernel::probing {
namespace {

// Owns a cgroup and removes it with its content.
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
    // A process that was just reaped may still be charged to the cgroup for a moment.
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

}  // namespace

Finding probe_cgroup2() {
  const auto mount = cgroup2_mount();
  if (!mount) return no("no cgroup v2 file system is mounted");
  const TemporaryCgroup cgroup;
  if (!cgroup.ok()) return cgroup.failure();
  return yes(fmt::format("{}{}", mount->string(), cgroup1_mounted() ? " (hybrid layout)" : ""));
}

namespace {

// Starts a child inside `cgroup` that waits for the parent.
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

}  // namespace

Finding probe_cgroup_kill() {
  const TemporaryCgroup cgroup;
  if (!cgroup.ok()) return cgroup.failure();
  Finding why;
  const auto child = child_in(cgroup, why);
  if (!child) return why;
  if (auto written = write_control(cgroup.path() + "/cgroup.kill", "1"); !written) return no(written.error().message);
  const int status = child->wait(kPatienceMs);
  if (status < 0 || !WIFSIGNALED(status)) return no("the process survived");
  return yes("a cgroup was killed");
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
  if (child->wait(kPatienceMs) != 0) return no("the process did not continue after the thaw");
  return yes("a cgroup was frozen and continued");
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
    ::close(ours.get());  // otherwise the child would keep our end open, and its read below would never end
    char byte = 0;
    ::_exit(::read(theirs.get(), &byte, 1) == 1 ? 0 : 1);
  }
  theirs.reset();
  Child child(static_cast<pid_t>(pid), std::move(ours));
  const auto where = read_file(fmt::format("/proc/{}/cgroup", pid), 65536);
  if (!where || where->find(cgroup.name()) == std::string::npos) return no("the process started in another cgroup");
  return yes("a process started in its cgroup");
}

namespace {

// Creates a folder for the controller, moves a child into it, sets a limit and removes it again.
Finding probe_controller(Controller controller, std::uint64_t amount) {
  const auto place = find_controller(controller);
  if (!place) return no(place.error().message);
  if (place->v2) {
    if (auto passed = pass_on(controller, place->base, place->base); !passed) return no(passed.error().message);
  }
  std::string folder = place->base.string() + "/rose-probe-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr)
    return no_errno(fmt::format("making a cgroup in {}", place->base.string()), errno);
  Finding found = [&] {
    Child child([](int socket) { return wait_for_parent(socket) ? 0 : 1; });
    if (!child.started()) return no("no child could be started");
    if (auto moved = write_control(folder + "/cgroup.procs", std::to_string(child.pid())); !moved)
      return no(moved.error().message);
    if (const int error = write_all(folder, limited(controller, place->v2, amount)); error != 0)
      return no_errno("setting a limit", error);
    const bool kept = in_force(folder, controller, place->v2, amount);
    if (const int error = write_all(folder, unlimited(controller, place->v2)); error != 0)
      return no_errno("lifting a limit", error);
    child.release();
    child.wait(kPatienceMs);
    if (!kept) return no("a limit was written but is not in force");
    return yes(fmt::format("a limit was set in {}", place->base.string()));
  }();
  const std::int64_t end = monotonic_ns() + 1'000'000'000;
  while (::rmdir(folder.c_str()) != 0 && errno == EBUSY && monotonic_ns() < end) ::usleep(1000);
  return found;
}

}  // namespace

Finding probe_memory_controller() { return probe_controller(Controller::memory, 16U << 20); }
Finding probe_cpu_controller() { return probe_controller(Controller::cpu, 50'000); }

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
      // The child creates the socket, because a socket belongs to the cgroup of the process that created it.
      return send_to_self() ? 0 : 2;
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

}  // namespace rose::kernel::probing
