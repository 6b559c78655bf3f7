#include "deploy/machine/processes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"
#include "base/trim.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/containers.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::deploy {
namespace {

template <typename Number>
std::optional<Number> number(std::string_view text) {
  text = trimmed(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<Attached> from_pid(pid_t pid) {
  const auto stat = kernel::process_stat(pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X')
    return fail(ErrorKind::inconclusive, fmt::format("process {} does not exist", pid));
  Attached attached;
  attached.pid = pid;
  attached.cgroup = kernel::cgroup_folder_of(pid);
  // The root folder contains the whole machine, not the node.
  if (const auto mount = kernel::cgroup2_mount(); mount && attached.cgroup == *mount) attached.cgroup.clear();
  return attached;
}

constexpr uid_t kAnybody = static_cast<uid_t>(-2);
constexpr const char* kOwnCgroup =
    "start the node in its own cgroup: from `setup` (rose gives it one), as a systemd unit, or in a container";

std::string comm_of(pid_t pid) {
  std::string name = read_file(fmt::format("/proc/{}/comm", pid), 4096).value_or("?");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

// A process in the folder that does not descend from `root`; 0 if there is none.
pid_t stranger_in(const std::filesystem::path& folder, pid_t root) {
  pid_t suspect = 0;
  // A process that starts or ends while the two lists are read may be in only one of them. Therefore a process counts
  // as a stranger only if it is found in two successive attempts.
  for (int look = 0; look < 8; ++look) {
    const std::vector<pid_t> here = cgroup::processes(folder);
    const std::vector<pid_t> tree = kernel::with_descendants({root});
    const auto stranger = std::find_if(here.begin(), here.end(), [&](pid_t pid) {
      return std::find(tree.begin(), tree.end(), pid) == tree.end() && kernel::process_stat(pid) &&
             comm_of(pid) != kExecKeeper;
    });
    if (stranger == here.end()) return 0;
    if (*stranger == suspect) return suspect;
    suspect = *stranger;
  }
  return suspect;
}

Result<Attached> from_cgroup(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    return fail(ErrorKind::inconclusive, fmt::format("cgroup {} does not exist", folder.string()),
                "the setup command must have started the node");
  const pid_t pid = leading_process(cgroup::processes(folder));
  if (pid == 0) return fail(ErrorKind::inconclusive, fmt::format("cgroup {} has no process", folder.string()));
  return Attached{pid, folder, true};
}

}  // namespace

pid_t leading_process(const std::vector<pid_t>& pids) {
  pid_t best = 0;
  std::uint64_t best_start = 0;
  for (const pid_t pid : pids) {
    const auto stat = kernel::process_stat(pid);
    if (!stat || stat->state == 'Z' || stat->state == 'X') continue;
    if (std::find(pids.begin(), pids.end(), stat->ppid) != pids.end()) continue;
    if (best == 0 || stat->start_ticks < best_start || (stat->start_ticks == best_start && pid < best)) {
      best = pid;
      best_start = stat->start_ticks;
    }
  }
  return best;
}

std::string described(pid_t pid) { return fmt::format("{} ({})", pid, comm_of(pid)); }

bool is_within(const std::filesystem::path& folder, const std::filesystem::path& outer) {
  return folder == outer || folder.native().starts_with(outer.native() + "/");
}

Result<void> check_without_rose(const std::filesystem::path& cgroup) {
  if (!is_within(kernel::cgroup_folder_of(::getpid()), cgroup)) return {};
  return fail(
      ErrorKind::inconclusive,
      fmt::format("cgroup {} contains rose itself, which would be stopped together with the node", cgroup.string()),
      kOwnCgroup);
}

Result<void> check_alone(const Attached& attached) {
  if (attached.cgroup.empty()) {
    // Without a cgroup of its own, the node's process tree is signalled, so rose must not be in that tree.
    const std::vector<pid_t> tree = kernel::with_descendants({attached.pid});
    if (std::find(tree.begin(), tree.end(), ::getpid()) == tree.end()) return {};
    return fail(ErrorKind::inconclusive,
                fmt::format("rose itself descends from process {} and would be stopped together with the node",
                            described(attached.pid)),
                kOwnCgroup);
  }
  if (auto ok = check_without_rose(attached.cgroup); !ok)
    return Unexpected(std::move(ok).error().in(fmt::format("process {}", attached.pid)));
  const pid_t stranger = attached.named ? 0 : stranger_in(attached.cgroup, attached.pid);
  if (stranger == 0) return {};
  return fail(
      ErrorKind::inconclusive,
      fmt::format("process {} shares its cgroup {} with process {}, which does not descend from it and would be "
                  "stopped together with it",
                  attached.pid, attached.cgroup.string(), described(stranger)),
      fmt::format(
          "if all of them belong to the node, use attach = {{ cgroup = \"{}\" }} (or unit, or container); else {}",
          attached.cgroup.string(), kOwnCgroup));
}

namespace {

// The content of a pid file in the run's folder, and the user who could have written it: the owner of the file, or the
// owner of a folder on the path, who may replace entries in it. Links that lead out of the run's folder are not
// followed.
struct PidFile {
  std::string content;
  std::optional<uid_t> writer;  // none: only the user who runs rose could write it
};
Result<PidFile> read_pid_file(const std::filesystem::path& run_dir, const std::filesystem::path& inside) {
  PidFile read;
  const auto may_choose = [&read](const struct stat& status) {
    if (status.st_uid != ::geteuid()) read.writer = status.st_uid;
    else if ((status.st_mode & 0022) != 0) read.writer = kAnybody;
  };
  ROSE_TRY(OpenFolder at, OpenFolder::open(run_dir));
  for (const std::filesystem::path& part : inside.parent_path()) {
    ROSE_TRY(at, at.enter(part));
    ROSE_TRY(const struct stat status, at.status());
    may_choose(status);
  }
  const Fd file = at.file(inside.filename());
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    return fail(ErrorKind::environment,
                fmt::format("cannot open {}: {}", (run_dir / inside).string(), std::strerror(errno)));
  may_choose(status);
  char text[64] = {};
  const ssize_t size = ::pread(file.get(), text, sizeof text - 1, 0);
  read.content.assign(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return read;
}

// Refuses a process of a user other than the writer of the pid file. Otherwise the writer could direct faults at
// processes to which the writer may not send signals.
Result<void> check_writer(const std::filesystem::path& path, uid_t writer, pid_t pid) {
  struct stat process{};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &process) != 0 || process.st_uid == writer) return {};
  return fail(ErrorKind::inconclusive,
              fmt::format("pid file {}: {} may have written it, and process {} belongs to user {}", path.string(),
                          writer == kAnybody ? "anybody" : fmt::format("user {}", writer), pid, process.st_uid),
              "let setup write the pid file in the run's folder, outside of nodes' folders");
}

}  // namespace

Result<Attached> find_attached(const config::Attach& attach, const std::filesystem::path& run_dir) {
  if (attach.pid_file) {
    const std::filesystem::path path = run_dir / *attach.pid_file;
    // A pid file in the run's folder may have been written by a node, whose user may also own folders on the path
    // there.
    const std::filesystem::path inside = path.lexically_normal().lexically_relative(run_dir.lexically_normal());
    const bool of_run = !inside.empty() && *inside.begin() != "..";
    const Result<PidFile> read =
        of_run ? read_pid_file(run_dir, inside)
               : read_file(path, 4096).map([](std::string content) { return PidFile{std::move(content), {}}; });
    if (!read)
      return fail(ErrorKind::inconclusive, fmt::format("pid file: {}", read.error().message),
                  "the setup command must write it; a relative path is relative to the run directory");
    const auto pid = number<pid_t>(read->content);
    if (!pid || *pid <= 1)
      return fail(ErrorKind::inconclusive, fmt::format("pid file {} contains '{}', a process id is needed",
                                                       path.string(), read->content.substr(0, 40)));
    if (read->writer) ROSE_CHECK(check_writer(path, *read->writer, *pid));
    return from_pid(*pid).map_error([&](Error error) { return std::move(error).in("pid file " + path.string()); });
  }
  ROSE_TRY(const std::filesystem::path mount, kernel::cgroup2_mount());
  if (attach.cgroup) {
    // Accepts "/system.slice/x.service", as in /proc/PID/cgroup, or the path of a folder below the mount.
    const std::filesystem::path text = std::filesystem::path(*attach.cgroup).lexically_normal();
    std::filesystem::path folder = is_within(text, mount) ? text : (mount / text.relative_path()).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();  // "/x/" becomes "/x"
    return from_cgroup(folder);
  }
  if (attach.unit) {
    ROSE_TRY(const Located found, locate_unit(*attach.unit, mount));
    if (found.cgroup.empty()) return from_pid(found.pid);
    ROSE_TRY(Attached attached, from_cgroup(found.cgroup));
    if (found.pid > 0) attached.pid = found.pid;
    return attached;
  }
  if (attach.container) {
    ROSE_TRY(const Located found, locate_container(*attach.container, mount));
    return found.cgroup.empty() ? from_pid(found.pid) : from_cgroup(found.cgroup);
  }
  return fail(ErrorKind::bug, "attach without a target");
}

}  // namespace rose::deploy
