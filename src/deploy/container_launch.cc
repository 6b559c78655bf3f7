#include "deploy/container_launch.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/units.h"
#include "base/unix_socket.h"
#include "deploy/enter/enter.h"
#include "deploy/enter_file.h"
#include "deploy/environment.h"
#include "deploy/launch.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/containers.h"
#include "deploy/machine/processes.h"
#include "deploy/ready.h"
#include "kernel/cgroup2.h"
#include "kernel/own_limits.h"
#include "kernel/processes.h"

namespace rose::deploy {
namespace {

constexpr std::int64_t kContainerStart = 120 * kSecond;
constexpr int kEngineRefused = 125;  // exit status of `run` if the container cannot be created
constexpr std::int64_t kEnterNap = 1'000'000;
constexpr const char* kContainerCgroup = "rose.container";

bool over(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, 0) > 0;
}

std::uint32_t load(const std::uint32_t& value) { return __atomic_load_n(&value, __ATOMIC_ACQUIRE); }
int load(const std::int32_t& value) { return __atomic_load_n(&value, __ATOMIC_ACQUIRE); }

}  // namespace

EngineChild& EngineChild::operator=(EngineChild&& other) noexcept {
  if (this == &other) return *this;
  kill();
  pidfd_ = std::move(other.pidfd_);
  return *this;
}

int EngineChild::reap() {
  if (!pidfd_) return -1;
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return -1;
  pidfd_.reset();
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

void EngineChild::kill() {
  if (!pidfd_) return;
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) != 0 && errno == EINTR) {
  }
  pidfd_.reset();
}

Result<void> place_entry(const std::filesystem::path& folder) {
  if (::mkdir(folder.c_str(), 0755) != 0 || ::chmod(folder.c_str(), 0755) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", folder.string()), errno);
  return write_file(folder / ROSE_ENTER_PROGRAM, enter_program(), 0755);
}

Result<ContainerLaunch> ContainerLaunch::prepare(const ContainerStart& start) {
  ContainerLaunch launch;
  launch.what_ = start.what;
  const std::filesystem::path path = start.enter / ROSE_ENTER_SOCKET;
  ROSE_TRY(const UnixAddress address, unix_address(path));
  ::unlink(path.c_str());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The container's processes may have any user. Other users of the machine cannot reach the socket, because its folder
  // is private.
  if (!socket || ::bind(socket.get(), address.get(), UnixAddress::size()) != 0 || ::chmod(path.c_str(), 0666) != 0 ||
      ::listen(socket.get(), 1) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("{}: cannot listen at {}", start.what, path.string()), errno);

  LaunchSpec engine;
  engine.what = "engine of " + start.what;
  engine.file = start.engine.front();
  engine.argv = start.engine;
  engine.env = inherited();
  engine.directory = "/";
  engine.stdout_log = engine.stderr_log = start.engine_log;
  engine.cgroup = start.engine_cgroup.string();
  {
    ROSE_TRY(Launch running, Launch::prepare(engine));
    ROSE_TRY(Fd pidfd, running.release());
    launch.engine_ = EngineChild(std::move(pidfd));
  }
  Result<void> met = launch.meet(start, socket);
  // Processes in the container can see the socket too, so remove it after the first connection.
  socket.reset();
  ::unlink(path.c_str());
  if (!met) return Unexpected(std::move(met).error());
  return launch;
}

Result<void> ContainerLaunch::meet(const ContainerStart& start, const Fd& socket) {
  const std::int64_t patience = start.makes ? kMakeTimeout : kContainerStart;
  const std::int64_t until = monotonic_ns() + patience;
  for (;;) {
    visitor_ = Fd(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (visitor_) break;
    const int status = engine_.reap();
    if (start.makes && status == kEngineRefused)
      return fail(ErrorKind::environment,
                  fmt::format("{}: cannot create its container: {}", what_, tail(start.engine_log, 1)));
    if (status >= 0 && tail(start.engine_log, 3).find("workdir") != std::string::npos)
      return fail(ErrorKind::input,
                  fmt::format("{}: its working_dir is not in the image: {}", what_, tail(start.engine_log, 1)),
                  "podman does not create it: create the folder in the image, mount a volume there, or name another "
                  "working_dir");
    if (status >= 0)
      return fail(ErrorKind::inconclusive,
                  fmt::format("{}: its container does not start: the engine exited with status {}", what_, status),
                  fmt::format("it said: {}", tail(start.engine_log, 3)));
    if (monotonic_ns() >= until)
      return fail(ErrorKind::inconclusive,
                  fmt::format("{}: its container did not start within {}", what_, format_duration(patience)));
    ROSE_CHECK(cancel::check());
    pollfd waits[2] = {{socket.get(), POLLIN, 0}, {engine_.fd(), POLLIN, 0}};
    (void)::poll(waits, 2, 200);
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(visitor_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
    return fail(ErrorKind::inconclusive, fmt::format("{}: cannot determine the container's processes", what_));
  pid_ = peer.pid;
  uid_ = peer.uid;
  gid_ = peer.gid;
  pidfd_ = kernel::open_pidfd(pid_);
  if (!pidfd_) return fail(ErrorKind::inconclusive, fmt::format("{}: its container ended immediately", what_));
  ROSE_CHECK(come_here(start.cgroup));
  ROSE_CHECK(give_folders(start));
  // Files that the node opens by name (/dev/stdout) must belong to its user.
  ROSE_TRY(const Fd out, open_log(start.stdout_log, nullptr));
  ROSE_TRY(const Fd err, open_log(start.stderr_log, nullptr));
  for (const Fd* fd : {&out, &err})
    if (::fchown(fd->get(), uid_, gid_) != 0)
      return fail_errno(ErrorKind::environment,
                        fmt::format("{}: cannot change the owner of its log to its user", what_), errno);
  return hand_over(start, out, err);
}

Result<void> ContainerLaunch::give_folders(const ContainerStart& start) const {
  const auto in = [&](Error error) { return std::move(error).in(what_); };
  for (const GivenFolder& given : start.folders) {
    ROSE_TRY(const OpenFolder above, OpenFolder::open(given.above).map_error(in));
    ROSE_TRY(const OpenFolder folder, above.enter(given.inside).map_error(in));
    ROSE_TRY(const struct stat status, folder.status());
    ROSE_CHECK(folder.give({uid_, gid_}, status.st_mode & 07777).map_error(in));
  }
  return {};
}

// Moves the container to the node's cgroup if the engine has not placed it there. With cgroup v2, the engine's limits
// are copied to a folder below the node's folder. Faults set their limits on the node's folder itself, so the two kinds
// of limits do not affect each other.
Result<void> ContainerLaunch::come_here(const std::filesystem::path& cgroup) const {
  const std::filesystem::path there = kernel::cgroup_folder_of(pid_);
  if (is_within(there, cgroup)) return {};
  std::filesystem::path into = cgroup;
  ROSE_TRY(const std::filesystem::path mount, kernel::cgroup2_mount());
  if (const auto engines = folder_of_container(there, mount); !engines.empty()) {
    if (const auto limits = kernel::own_limits(engines); !limits.empty()) {
      const std::filesystem::path folder = cgroup / kContainerCgroup;
      if (auto taken = kernel::take_over(limits, mount, folder)) into = folder;
      else log::warning("{}: the limits that its engine set are not in force: {}", what_, taken.error().message);
    }
  }
  return write_control(into / "cgroup.procs", std::to_string(pid_));
}

Result<void> ContainerLaunch::hand_over(const ContainerStart& start, const Fd& out, const Fd& err) {
  program_ = start.argv.front();
  std::string block(sizeof(rose_enter_page), '\0');
  rose_enter_page head{};
  head.magic = ROSE_ENTER_MAGIC;
  head.version = ROSE_ENTER_VERSION;
  head.state = ROSE_ENTER_PREPARING;
  head.listener = -1;
  const auto notified = [&start](long number) {
    return std::find(start.notified_syscalls.begin(), start.notified_syscalls.end(), number) !=
           start.notified_syscalls.end();
  };
  head.may_call = !notified(SYS_futex) && !notified(SYS_recvfrom) && start.notified_clocks == ClockCalls::none ? 1 : 0;
  head.filter_at = static_cast<std::uint32_t>(block.size());
  if (!start.notified_syscalls.empty() || start.notified_clocks != ClockCalls::none) {
    const std::vector<sock_filter> program = notify_filter(start.notified_syscalls, start.notified_clocks);
    head.filter_count = static_cast<std::uint32_t>(program.size());
    block.append(reinterpret_cast<const char*>(program.data()), program.size() * sizeof(sock_filter));
  }
  head.argv_at = static_cast<std::uint32_t>(block.size());
  head.argc = static_cast<std::uint32_t>(start.argv.size());
  for (const std::string& word : start.argv) block.append(word.c_str(), word.size() + 1);
  head.env_at = static_cast<std::uint32_t>(block.size());
  head.envc = static_cast<std::uint32_t>(start.env.size());
  for (const auto& [name, value] : start.env) {
    const std::string variable = fmt::format("{}={}", name, value);
    block.append(variable.c_str(), variable.size() + 1);
  }
  std::memcpy(block.data(), &head, sizeof head);

  const Fd memory(::memfd_create("rose-enter", MFD_CLOEXEC));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(block.size())) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("{}: cannot create shared memory", what_), errno);
  void* mapped = ::mmap(nullptr, block.size(), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED)
    return fail_errno(ErrorKind::environment, fmt::format("{}: cannot map memory", what_), errno);
  std::memcpy(mapped, block.data(), block.size());
  page_ = static_cast<rose_enter_page*>(mapped);
  page_size_ = block.size();
  // Sends a message that consists of the size of the page, with the descriptors attached.
  const int descriptors[ROSE_ENTER_DESCRIPTORS] = {memory.get(), out.get(), err.get()};
  if (!send_descriptors(visitor_.get(), descriptors, static_cast<std::uint32_t>(block.size())))
    return fail_errno(ErrorKind::inconclusive, fmt::format("{}: its container ended immediately", what_), errno);

  // If the process is frozen, waits until it is thawed or killed.
  while (load(page_->state) == ROSE_ENTER_PREPARING && load(page_->error) == 0 && !over(pidfd_.get())) {
    const timespec nap{0, kEnterNap};
    ::syscall(SYS_futex, &page_->state, FUTEX_WAIT, ROSE_ENTER_PREPARING, &nap, nullptr, 0);
  }
  ROSE_CHECK(failure());
  if (const int number = load(page_->listener); number >= 0) {
    listener_ = Fd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd_.get(), number, 0)));
    // ESRCH or EBADF means that the process was killed while it waited; its pidfd reports that.
    if (!listener_ && errno != ESRCH && errno != EBADF)
      return fail_errno(ErrorKind::environment, fmt::format("{}: cannot take over its seccomp listener", what_), errno);
  }
  return {};
}

Result<void> ContainerLaunch::failure() const {
  const int err = load(page_->error);
  if (err == 0) return {};
  switch (page_->stage) {
    case ROSE_ENTER_FIND:
      return fail(ErrorKind::input,
                  fmt::format("{}: the image has no command '{}': {}", what_, program_, std::strerror(err)),
                  program_.find('/') == std::string::npos ? "without a slash it is searched in the container's PATH"
                                                          : "the path is inside the container");
    case ROSE_ENTER_FILTER:
      return fail_errno(ErrorKind::environment,
                        fmt::format("{}: cannot install a seccomp filter in its container", what_), err);
    case ROSE_ENTER_EXEC:
      return fail(ErrorKind::input,
                  fmt::format("{}: cannot execute {} in its container: {}", what_, program_, std::strerror(err)),
                  err == ENOENT ? "the interpreter in its first line, or its dynamic loader, is not in the image" : "");
    default: return fail_errno(ErrorKind::environment, fmt::format("{}: cannot prepare its container", what_), err);
  }
}

Result<Fd> ContainerLaunch::release() {
  __atomic_store_n(&page_->state, ROSE_ENTER_RELEASED, __ATOMIC_RELEASE);
  ::syscall(SYS_futex, &page_->state, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  // The entry point's end of the socket closes at the execve, or when the process ends. The wait is limited for the
  // reasons given in Launch::release().
  pollfd p{visitor_.get(), POLLIN | POLLRDHUP, 0};
  const std::int64_t until = monotonic_ns() + 10 * kSecond;
  while (::poll(&p, 1, 100) == 0 && monotonic_ns() < until) {
  }
  ROSE_CHECK(failure());
  ::munmap(std::exchange(page_, nullptr), page_size_);
  visitor_.reset();
  return std::move(pidfd_);
}

ContainerLaunch::ContainerLaunch(ContainerLaunch&& other) noexcept
    : what_(std::move(other.what_)),
      program_(std::move(other.program_)),
      pid_(std::exchange(other.pid_, 0)),
      uid_(other.uid_),
      gid_(other.gid_),
      pidfd_(std::move(other.pidfd_)),
      visitor_(std::move(other.visitor_)),
      listener_(std::move(other.listener_)),
      engine_(std::move(other.engine_)),
      page_(std::exchange(other.page_, nullptr)),
      page_size_(other.page_size_) {}

ContainerLaunch::~ContainerLaunch() {
  listener_.reset();
  if (pidfd_) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  if (page_ != nullptr) ::munmap(page_, page_size_);
}

}  // namespace rose::deploy
