#include "deploy/machine/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::deploy::cgroup {
namespace {

// Reads a key of cgroup.events ("populated", "frozen"). Returns false if the folder does not exist.
bool event(int events_fd, std::string_view key) {
  char buffer[256];
  const ssize_t n = ::pread(events_fd, buffer, sizeof buffer, 0);
  if (n <= 0) return false;
  for (const std::string& line : split(std::string_view(buffer, static_cast<std::size_t>(n)), '\n'))
    if (line.size() > key.size() + 1 && line.starts_with(key)) return line.back() == '1';
  return false;
}

Fd open_events(const std::filesystem::path& folder) {
  return Fd(::open((folder / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
}

// Waits until `key` has the value. kernfs raises POLLPRI on each change since the last read.
bool wait_event(const std::filesystem::path& folder, std::string_view key, bool value, std::int64_t timeout_ns) {
  const Fd events = open_events(folder);
  if (!events) return !value;
  const std::int64_t until = monotonic_ns() + timeout_ns;
  while (event(events.get(), key) != value) {
    const std::int64_t left = until - monotonic_ns();
    if (left <= 0) return false;
    pollfd p{events.get(), POLLPRI, 0};
    // A notification normally ends the wait. The limit only bounds the delay if a notification is missed.
    const std::int64_t nap = std::min<std::int64_t>(left, 50'000'000);
    const timespec ts{0, nap};
    ::ppoll(&p, 1, &ts, nullptr);
  }
  return true;
}

void collect(const std::filesystem::path& folder, std::vector<pid_t>& pids) {
  if (const auto content = read_file(folder / "cgroup.procs")) {
    for (const std::string& line : split(*content, '\n')) {
      pid_t pid = 0;
      std::from_chars(line.data(), line.data() + line.size(), pid);
      if (pid > 0) pids.push_back(pid);  // 0: a process in another PID namespace
    }
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_directory(error)) collect(entry.path(), pids);
}

Result<void> remove_tree(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_directory(error)) ROSE_CHECK(remove_tree(entry.path()));
  // A process that has just died may still be charged to the folder for a moment.
  const std::int64_t until = monotonic_ns() + 2'000'000'000;
  while (::rmdir(folder.c_str()) != 0) {
    if (errno == ENOENT) return {};
    if (errno != EBUSY || monotonic_ns() > until)
      return fail_errno(ErrorKind::environment, fmt::format("cannot remove cgroup {}", folder.string()), errno);
    ::usleep(500);
  }
  return {};
}

}  // namespace

Result<std::filesystem::path> base() {
  ROSE_TRY(std::filesystem::path mount, kernel::cgroup2_mount());
  if (const char* parent = std::getenv("ROSE_CGROUP_PARENT"); parent != nullptr && *parent != '\0') {
    struct statfs filesystem{};
    if (::statfs(parent, &filesystem) != 0 || filesystem.f_type != CGROUP2_SUPER_MAGIC || ::access(parent, W_OK) != 0)
      return fail(ErrorKind::input, fmt::format("ROSE_CGROUP_PARENT: '{}' is not a writable cgroup v2 folder", parent),
                  fmt::format("name a folder below {}, or unset it", mount.string()));
    return std::filesystem::path(parent);
  }
  if (::access(mount.c_str(), W_OK) == 0) return mount;
  std::filesystem::path own = kernel::cgroup_folder_of(::getpid());
  if (!own.empty() && ::access(own.c_str(), W_OK) == 0) return own;
  return fail(ErrorKind::environment, fmt::format("cannot create cgroups in {}: it is not writable", mount.string()),
              "run as root; in a container, mount cgroup v2 read-write (docker run --privileged)");
}

Result<void> make(const std::filesystem::path& folder) {
  if (::mkdir(folder.c_str(), 0755) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create cgroup {}", folder.string()), errno);
  return {};
}

std::vector<pid_t> processes(const std::filesystem::path& folder) {
  std::vector<pid_t> pids;
  if (!folder.empty()) collect(folder, pids);
  return pids;
}

bool populated(const std::filesystem::path& folder) {
  const Fd events = open_events(folder);
  return events && event(events.get(), "populated");
}

bool frozen(const std::filesystem::path& folder) {
  // Uses the requested state: a node that starts must not be moved into a folder that is frozen or is being frozen.
  const auto content = read_file(folder / "cgroup.freeze");
  if (content && content->starts_with('1')) return true;
  const Fd events = open_events(folder);
  return events && event(events.get(), "frozen");
}

Result<void> order_freeze(const std::filesystem::path& folder, bool frozen) {
  return write_control(folder / "cgroup.freeze", frozen ? "1" : "0");
}

Result<void> freeze(const std::filesystem::path& folder, bool frozen) {
  ROSE_CHECK(order_freeze(folder, frozen));
  // An empty folder is never reported as frozen.
  if (frozen && populated(folder)) (void)wait_event(folder, "frozen", true, 500'000'000);
  return {};
}

Result<void> kill(const std::filesystem::path& folder) {
  if (::access(folder.c_str(), F_OK) != 0) return {};  // removed with its content
  if (::access((folder / "cgroup.kill").c_str(), F_OK) == 0) return write_control(folder / "cgroup.kill", "1");
  // Before Linux 5.14 there is no cgroup.kill. Freezing first prevents forks, so one round of signals reaches all
  // processes. A killed process ends even in a frozen folder. If the folder was frozen before, it stays frozen, because
  // its node is paused.
  const auto before = read_file(folder / "cgroup.freeze");
  if (auto ok = write_control(folder / "cgroup.freeze", "1"); !ok) return ok;
  signal(folder, SIGKILL);
  if (before && before->starts_with('1')) return {};
  return write_control(folder / "cgroup.freeze", "0");
}

void signal(const std::filesystem::path& folder, int number) {
  for (const pid_t pid : processes(folder)) (void)signal(folder, pid, number);
}

bool signal(const std::filesystem::path& folder, pid_t pid, int number) {
  const Fd process = kernel::open_pidfd(pid);
  if (!process) return false;
  // The descriptor refers to this process even if the id is reused. So if the process has ended, no other process gets
  // the signal.
  const std::uint64_t wanted = kernel::cgroup_id(folder);
  std::filesystem::path at = kernel::cgroup_folder_of(pid);
  bool member = at.empty();  // if its cgroup is not visible here, it is assumed to be a member
  for (; !member && at.has_relative_path(); at = at.parent_path())
    member = wanted != 0 && kernel::cgroup_id(at) == wanted;
  if (member) return kernel::pidfd_signal(process.get(), number);
  errno = ESRCH;
  return false;
}

bool wait_empty(const std::filesystem::path& folder, std::int64_t timeout_ns) {
  return wait_event(folder, "populated", false, timeout_ns);
}

Result<void> destroy(const std::filesystem::path& folder) {
  if (::access(folder.c_str(), F_OK) != 0) return {};
  if (populated(folder)) {
    ROSE_CHECK(kill(folder));
    if (!wait_empty(folder, 10'000'000'000))
      return fail(ErrorKind::environment,
                  fmt::format("processes in cgroup {} do not end (stuck in the kernel?)", folder.string()));
  }
  return remove_tree(folder);
}

}  // namespace rose::deploy::cgroup
