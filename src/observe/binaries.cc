#include "observe/binaries.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "kernel/maps.h"
#include "observe/targets.h"

namespace rose::observe {
namespace {

constexpr std::size_t kMostProcesses = 1024;  // processes examined
constexpr std::size_t kMostPrograms = 64;

std::filesystem::path program_of(pid_t pid) {
  std::error_code bad;
  auto path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), bad);
  return bad ? std::filesystem::path() : path;
}

// The files that a process has mapped as executable, under the names that it uses.
std::set<std::string> mapped(pid_t pid) {
  std::set<std::string> found;
  for (kernel::MappedRange& range : kernel::maps_of(pid))
    if (range.executable() && range.name.starts_with('/')) found.insert(std::move(range.name));
  return found;
}

}  // namespace

std::vector<pid_t> processes_of(const Target& target) {
  std::vector<pid_t> found = kernel::with_descendants(target.pids);
  const auto read = [&](const std::filesystem::path& folder) {
    std::ifstream file(folder / "cgroup.procs");
    for (pid_t pid = 0; found.size() < kMostProcesses && file >> pid;) found.push_back(pid);
  };
  for (const auto& cgroup : target.cgroups) {
    read(cgroup);
    std::error_code bad;
    for (std::filesystem::recursive_directory_iterator at(cgroup, bad), end; !bad && at != end; at.increment(bad)) {
      if (at->is_directory(bad)) read(at->path());
    }
  }
  return found;
}

bool any_maps(const std::vector<Target>& targets, const std::filesystem::path& file) {
  struct stat wanted{};
  if (::stat(file.c_str(), &wanted) != 0) return false;
  for (const Target& target : targets) {
    for (const pid_t pid : processes_of(target)) {
      if (!kernel::trusts_mounts_of(pid)) continue;
      for (const auto& path : mapped(pid)) {
        struct stat status{};
        if (std::filesystem::path(path).filename() == file.filename() &&
            ::stat(fmt::format("/proc/{}/root{}", pid, path).c_str(), &status) == 0 && status.st_dev == wanted.st_dev &&
            status.st_ino == wanted.st_ino)
          return true;
      }
    }
  }
  return false;
}

int Binaries::hold(const std::filesystem::path& open, const std::filesystem::path& name) {
  Held held;
  held.fd = Fd(::open(open.c_str(), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!held.fd || ::fstat(held.fd.get(), &status) != 0) return -1;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].device == status.st_dev && held_[i].inode == status.st_ino) return static_cast<int>(i);
  }
  held.name = name;
  held.path = fmt::format("/proc/self/fd/{}", held.fd.get());
  held.device = status.st_dev;
  held.inode = status.st_ino;
  held_.push_back(std::move(held));
  return static_cast<int>(held_.size() - 1);
}

int Binaries::add(const std::filesystem::path& path) {
  const auto copy = copies_.find(path);
  return hold(copy == copies_.end() ? path : copy->second, path);
}

std::vector<int> Binaries::substitutes(const Target& target, const std::filesystem::path& wanted) {
  std::vector<int> found;
  const auto take = [&](int binary) {
    if (binary >= 0 && std::find(found.begin(), found.end(), binary) == found.end()) found.push_back(binary);
  };
  if (!wanted.empty()) {
    if (std::error_code bad; std::filesystem::is_regular_file(wanted, bad)) take(add(wanted));
    for (const auto& given : target.binaries) {
      if (given.filename() == wanted.filename()) take(add(given));
    }
    // A process may be in a container, where its path leads to another file than on this host. Its root directory in
    // /proc leads to the right file.
    for (const pid_t pid : processes_of(target)) {
      if (!kernel::trusts_mounts_of(pid)) continue;
      if (const auto program = program_of(pid); program.filename() == wanted.filename())
        take(hold(fmt::format("/proc/{}/exe", pid), program));
      for (const auto& file : mapped(pid)) {
        if (std::filesystem::path(file).filename() != wanted.filename()) continue;
        take(hold(fmt::format("/proc/{}/root{}", pid, file), file));
      }
    }
  }
  if (!found.empty()) return found;
  for (const auto& given : target.binaries) take(add(given));
  if (!found.empty() || wanted.empty()) return found;
  // The name may differ, for example by a version, so take all programs. Skip processes that were just forked for `--
  // CMD` and still execute rose.
  const auto ourselves = program_of(::getpid());
  for (const pid_t pid : processes_of(target)) {
    if (found.size() >= kMostPrograms) break;
    if (const auto program = program_of(pid); !program.empty() && program != ourselves && kernel::trusts_mounts_of(pid))
      take(hold(fmt::format("/proc/{}/exe", pid), program));
  }
  return found;
}

}  // namespace rose::observe
