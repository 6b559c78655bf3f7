#include "kernel/processes.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace rose::kernel {
namespace {

constexpr std::size_t kMostStatBytes = 8192;
constexpr std::size_t kMostStatusBytes = std::size_t{1} << 16;

template <typename Number>
Number number_in(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The lines of /proc/PID/status; empty if the process cannot be read.
std::vector<std::string> status_lines(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid), kMostStatusBytes);
  return status ? split(*status, '\n') : std::vector<std::string>();
}

}  // namespace

std::optional<ProcessStat> process_stat(pid_t pid) {
  const auto content = read_file(fmt::format("/proc/{}/stat", pid), kMostStatBytes);
  if (!content) return std::nullopt;
  // Field 2, the name, may contain spaces and parentheses. The rest follows its last ')'.
  const std::size_t close = content->rfind(')');
  if (close == std::string::npos || close + 2 >= content->size()) return std::nullopt;
  const std::vector<std::string> fields = split(std::string_view(*content).substr(close + 2), ' ');
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  // The start time is relative to the start of the machine, shifted by the offset of this process's time namespace. The
  // offset is subtracted, so that processes in other namespaces compute the same value (deploy/identity.h).
  static const std::int64_t ticks_off = time_offsets().boottime_ns / (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
  constexpr std::uint32_t kExiting = 0x4;  // PF_EXITING in linux/sched.h
  return ProcessStat{number_in<pid_t>(fields[1]), fields[0].front(),
                     (number_in<std::uint32_t>(fields[6]) & kExiting) != 0,
                     number_in<std::uint64_t>(fields[19]) - static_cast<std::uint64_t>(ticks_off)};
}

bool process_exists(pid_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; }

std::vector<pid_t> with_descendants(const std::vector<pid_t>& roots) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().native();
    const auto pid = number_in<pid_t>(name);
    if (pid <= 0) continue;
    if (const auto stat = process_stat(pid)) children.emplace(stat->ppid, pid);
  }
  std::vector<pid_t> found;
  std::set<pid_t> seen;
  for (const pid_t root : roots)
    if (seen.insert(root).second) found.push_back(root);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto it = begin; it != end; ++it)
      if (seen.insert(it->second).second) found.push_back(it->second);
  }
  return found;
}

bool heeds(pid_t pid, int signal) {
  if (signal == SIGKILL || signal == SIGSTOP) return true;
  bool first = false;
  std::uint64_t caught = 0;
  for (const std::string& line : status_lines(pid)) {
    // The ids of the process in all nested namespaces, the innermost last.
    if (line.starts_with("NSpid:")) {
      const std::vector<std::string> numbers = split(line, '\t');
      first = numbers.size() > 2 && numbers.back() == "1";
    }
    if (line.starts_with("SigCgt:")) caught = std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  return !first || (caught >> (signal - 1) & 1) != 0;
}

bool ignores(pid_t pid, int signal) {
  for (const std::string& line : status_lines(pid))
    if (line.starts_with("SigIgn:") && (std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1) & 1) != 0)
      return true;
  return process_exists(pid) && !heeds(pid, signal);
}

pid_t tracer_of(pid_t pid) {
  constexpr std::string_view kKey = "TracerPid:\t";
  for (const std::string& line : status_lines(pid))
    if (line.starts_with(kKey)) return number_in<pid_t>(std::string_view(line).substr(kKey.size()));
  return 0;
}

pid_t own_number(pid_t pid) {
  for (const std::string& line : status_lines(pid)) {
    // The ids in all nested namespaces, the innermost last.
    if (!line.starts_with("NSpid:")) continue;
    const pid_t own = number_in<pid_t>(std::string_view(line).substr(line.find_last_of(" \t") + 1));
    return own != 0 ? own : pid;
  }
  return pid;
}

bool trusts_mounts_of(pid_t pid) {
  const Fd mounts(::open(fmt::format("/proc/{}/ns/mnt", pid).c_str(), O_RDONLY | O_CLOEXEC));
  const Fd own(::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
  const Fd owner(mounts ? ::ioctl(mounts.get(), NS_GET_USERNS) : -1);
  struct stat a{}, b{};
  return own && owner && ::fstat(own.get(), &a) == 0 && ::fstat(owner.get(), &b) == 0 && a.st_ino == b.st_ino &&
         a.st_dev == b.st_dev;
}

Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

Fd open_listed(pid_t pid, const ListProcesses& list) {
  Fd process = open_pidfd(pid);
  if (!process) return {};
  const std::vector<pid_t> all = list();
  if (std::find(all.begin(), all.end(), pid) != all.end()) return process;
  errno = ESRCH;
  return {};
}

bool signal_listed(pid_t pid, const ListProcesses& list, int signal) {
  const Fd process = open_listed(pid, list);
  return process && pidfd_signal(process.get(), signal);
}

bool pidfd_ended(int pidfd) {
  pollfd one{pidfd, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

bool pidfd_signal(int pidfd, int signal) { return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0; }

}  // namespace rose::kernel
