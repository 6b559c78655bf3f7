#include "deploy/descriptors.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "deploy/machine/cgroup.h"
#include "kernel/cgroup2.h"
#include "kernel/privilege.h"
#include "kernel/processes.h"

namespace rose::deploy {
namespace {

constexpr int kMostRounds = 1000;

constexpr int kSysResource = 24;  // CAP_SYS_RESOURCE

// prlimit() identifies processes only by id. If the process has ended meanwhile, another process may have got its id,
// and thus the limit. In this case, the other process gets its previous limit back. Returns false with errno on
// failure.
bool set_limit(const Fd& process, pid_t pid, const rlimit& wanted) {
  rlimit had{};
  if (::prlimit(pid, RLIMIT_NOFILE, &wanted, &had) != 0) return false;
  if (!process || !kernel::pidfd_ended(process.get())) return true;
  (void)::prlimit(pid, RLIMIT_NOFILE, &had, nullptr);
  errno = ESRCH;
  return false;
}

bool same(const rlimit& a, const rlimit& b) { return a.rlim_cur == b.rlim_cur && a.rlim_max == b.rlim_max; }

}  // namespace

bool DescriptorLimits::may_be_raised() {
  static const bool soft_only = !kernel::effective_capabilities().has(kSysResource);
  return soft_only;
}

Result<DescriptorLimits::Change> DescriptorLimits::change(pid_t pid, const List& list,
                                                          std::optional<std::uint64_t> limit, const Note& note) {
  const Fd process = kernel::open_pidfd(pid);
  const auto stat = kernel::process_stat(pid);
  rlimit now{};
  if (!stat || stat->state == 'Z') return Change::none;
  if (::prlimit(pid, RLIMIT_NOFILE, nullptr, &now) != 0) {
    if (errno == ESRCH) return Change::none;  // it has ended
    return fail_errno(ErrorKind::environment, fmt::format("cannot read the descriptor limit of process {}", pid),
                      errno);  // it belongs to another user
  }
  const bool soft_only = may_be_raised();
  const auto key = [soft_only](const rlimit& one) { return soft_only ? one.rlim_cur : one.rlim_max; };
  Change made = Change::again;
  auto found = known_.find({pid, stat->start_ticks});
  if (found == known_.end()) {
    const auto parent = inherited_.find(key(now));
    if (!limit && parent == inherited_.end()) return Change::none;
    made = Change::first;
    const Known fresh = parent == inherited_.end()
                            ? Known{now, now}
                            : Known{parent->second, {std::min(parent->second.rlim_cur, key(now)), now.rlim_max}};
    found = known_.emplace(std::pair{pid, stat->start_ticks}, fresh).first;
  }
  Known& one = found->second;
  // If the process itself has changed its limit since rose set it, the process's value is kept, unless that value
  // exceeds the limit to be set.
  const bool own = !same(now, one.set);
  rlimit wanted = one.before;
  if (limit) {
    wanted = {std::min<rlim_t>(wanted.rlim_cur, *limit),
              soft_only ? now.rlim_max : std::min<rlim_t>(wanted.rlim_max, *limit)};
    if (own) wanted.rlim_cur = std::min(wanted.rlim_cur, now.rlim_cur);
  } else if (own) {
    if (now.rlim_cur != one.set.rlim_cur) wanted.rlim_cur = now.rlim_cur;
    if (now.rlim_max != one.set.rlim_max) wanted.rlim_max = now.rlim_max;
  }
  if (soft_only) wanted.rlim_max = now.rlim_max;
  if (same(now, wanted)) return Change::none;
  // Since the id was listed, the process may have ended and the id may have been reused. Check again whether the id is
  // in the list. If it is, and the process of the pidfd still lives, the id belongs to that process.
  const std::vector<pid_t> pids = list();
  if (std::find(pids.begin(), pids.end(), pid) == pids.end()) return Change::none;
  if (limit) {
    ROSE_CHECK(note(
        fmt::format("{} {} {} {} {}", pid, stat->start_ticks, one.before.rlim_cur, one.before.rlim_max, key(wanted))));
    inherited_[key(wanted)] = one.before;
  }
  rlimit after{};
  if (!set_limit(process, pid, wanted) || ::prlimit(pid, RLIMIT_NOFILE, nullptr, &after) != 0) {
    if (errno == ESRCH) return Change::none;
    return fail_errno(ErrorKind::environment, fmt::format("cannot change the descriptor limit of process {}", pid),
                      errno);
  }
  if (!same(after, wanted))
    return fail(ErrorKind::environment, fmt::format("process {} has a limit of {} descriptors instead of {}", pid,
                                                    after.rlim_cur, wanted.rlim_cur));
  one.set = wanted;
  return made;
}

Result<std::size_t> DescriptorLimits::apply(const List& list, std::optional<std::uint64_t> limit, const Note& note,
                                            bool once) {
  std::size_t changed = 0;
  // Repeat until no new process is found. A process that is being forked is not in the list yet, and it inherits its
  // parent's limit, which may still be the old one.
  int quiet = 0;
  for (int round = 0; round < kMostRounds && quiet < 3; ++round) {
    bool any = false;
    for (const pid_t pid : list()) {
      ROSE_TRY(const Change made, change(pid, list, limit, note));
      changed += made == Change::first ? 1 : 0;
      any = any || made != Change::none;
    }
    if (once) break;
    quiet = any ? 0 : quiet + 1;
    if (!any && quiet < 3) ::usleep(quiet == 1 ? 1'000 : 10'000);
  }
  if (!limit) known_.clear(), inherited_.clear();
  return changed;
}

std::size_t restore_descriptors(const std::vector<std::string>& notes) {
  struct Line {
    pid_t pid = 0;
    std::uint64_t start = 0;
    rlimit before{};
    rlim_t set = 0;
  };
  std::vector<Line> lines;
  for (const std::string& note : notes) {
    std::istringstream in(note);
    Line line;
    if (in >> line.pid >> line.start >> line.before.rlim_cur >> line.before.rlim_max >> line.set && line.pid > 0)
      lines.push_back(line);
  }
  std::size_t count = 0;
  const auto restore = [&](pid_t pid, const Fd& process, const Line& line) {
    rlimit now{};
    if (::prlimit(pid, RLIMIT_NOFILE, nullptr, &now) != 0 || (now.rlim_max != line.set && now.rlim_cur != line.set))
      return;
    rlimit wanted = line.before;
    if (now.rlim_cur < line.set) wanted.rlim_cur = now.rlim_cur;  // the process itself has lowered it
    if (set_limit(process, pid, wanted)) ++count;
  };
  for (const Line& line : lines) {
    const Fd process = kernel::open_pidfd(line.pid);
    const auto stat = kernel::process_stat(line.pid);
    if (!stat || stat->start_ticks != line.start) continue;
    // Children created in the meantime have inherited the limit.
    std::vector<pid_t> pids = kernel::with_descendants({line.pid});
    // Descendants whose parent has ended are found by their cgroup. The root cgroup is excluded, because it contains
    // unrelated processes.
    constexpr std::uint64_t kTop = 1;
    if (const auto folder = kernel::cgroup_folder_of(line.pid); kernel::cgroup_id(folder) > kTop)
      for (const pid_t pid : cgroup::processes(folder))
        if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
    for (const pid_t pid : pids) {
      const auto own = std::find_if(lines.begin(), lines.end(), [pid](const Line& each) { return each.pid == pid; });
      restore(pid, pid == line.pid ? Fd(::dup(process.get())) : kernel::open_pidfd(pid),
              own == lines.end() ? line : *own);
    }
  }
  return count;
}

}  // namespace rose::deploy
