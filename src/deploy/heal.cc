#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/cluster.h"
#include "deploy/control.h"
#include "deploy/deployment.h"
#include "deploy/descriptors.h"
#include "deploy/engine.h"
#include "deploy/identity.h"
#include "deploy/loopback.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/processes.h"
#include "deploy/names.h"
#include "deploy/network.h"
#include "deploy/volumes.h"
#include "kernel/cgroup2.h"
#include "kernel/controllers.h"
#include "kernel/processes.h"

namespace rose::deploy {
namespace {

constexpr std::size_t kMostStrangers = 3;
constexpr std::int64_t kEngineRemoval = 60 * kSecond;
constexpr std::int64_t kEngineSettles = 5 * kSecond;
constexpr std::int64_t kProcessesEnd = 2 * kSecond;

// Names that look like those of rose. Only a lock file shows who owns them.
std::vector<std::string> names_in(const std::filesystem::path& folder, bool directories) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.path().filename().native().starts_with("rose-") && entry.is_directory(ignored) == directories)
      names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ino_t netns_inode(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

// The processes in the network namespace at `path`. Each descriptor is opened before its process is examined, so that
// the id cannot be reused meanwhile. Returns no processes if it is the namespace of the machine (that of process 1)
// or of this process.
std::vector<std::pair<pid_t, Fd>> processes_in_netns(const std::string& path) {
  std::vector<std::pair<pid_t, Fd>> found;
  struct statfs filesystem{};
  if (::statfs(path.c_str(), &filesystem) != 0 || filesystem.f_type != NSFS_MAGIC) return found;
  const ino_t inode = netns_inode(path);
  if (inode == netns_inode("/proc/self/ns/net") || inode == netns_inode("/proc/1/ns/net")) return found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    if (pid <= 0) continue;
    Fd pidfd = kernel::open_pidfd(pid);
    if (pidfd && netns_inode(fmt::format("/proc/{}/ns/net", pid)) == inode) found.emplace_back(pid, std::move(pidfd));
  }
  return found;
}

std::string ended_text(std::size_t count) {
  return count == 0 ? "" : fmt::format("ended {} process{}, ", count, count == 1 ? "" : "es");
}

class Healer {
 public:
  explicit Healer(bool forget) : forget_(forget) {}

  Healed healed;

  void undo(const Registration& dead) {
    at_work(dead);
    // Undoes the most harmful leftovers first, and those that need a container engine last, because engines may take
    // long.
    attached(dead);
    descriptors(dead);
    for (const std::string& folder : dead.all("cgroup")) {
      // rose notes only folders whose name is the id, so other lines are ignored.
      if (std::filesystem::path(folder).filename() == dead.id) cgroup_folder(folder);
    }
    for (const std::string& folder : dead.all("controller")) {
      if (std::filesystem::path(folder).filename().native().starts_with(dead.id)) controller_folder(folder);
    }
    volumes(dead.id);
    for (const std::string& name : dead.all("netns"))
      if (id_of(name) == dead.id) netns(name, false);
    // Docker does not remove a volume or image while its container exists, so volumes and images come last.
    std::vector<std::string> lines = dead.all("engine");
    std::stable_partition(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("\tvolume\t") == std::string::npos && line.find("\timage\t") == std::string::npos;
    });
    for (const std::string& line : lines) engine(undo_words(line, dead.id), dead.id);
    for (const std::string& folder : dead.all("images")) {
      std::error_code error;
      if (std::filesystem::path(folder).filename() == dead.id + "-images" &&
          std::filesystem::is_directory(std::filesystem::symlink_status(folder, error)))
        if (remove_tree(folder); !std::filesystem::exists(std::filesystem::symlink_status(folder, error)))
          healed.undone.push_back(fmt::format("folder {}: removed", folder));
    }
    for (const std::string& folder : dead.all("data"))
      if (auto left = leave_shared(folder); !left) healed.failed.push_back(left.error().message);
    for (const std::string& folder : dead.all("shared"))
      if (auto left = leave_shared(folder); !left) healed.failed.push_back(left.error().message);
    for (const std::string& folder : dead.all("run_dir")) {
      const std::filesystem::path socket = std::filesystem::path(folder) / kControlSocket;
      if (::unlink(socket.c_str()) == 0)
        healed.undone.push_back(fmt::format("control socket {}: removed", socket.string()));
      remove_tree(std::filesystem::path(folder) / kOwnFolder);
    }
  }

  // Undoes changes to processes that rose did not start and which keep running.
  void attached(const Registration& dead) {
    std::set<std::string> frozen;
    for (const auto& [key, value] : dead.notes) {
      if (key == "frozen") frozen.insert(value);
      if (key == "thawed") frozen.erase(value);
    }
    std::erase_if(frozen, [](const std::string& folder) {
      return !std::filesystem::is_directory(folder) || !cgroup::frozen(folder);
    });
    for (const std::string& value : dead.all("stopped"))
      if (const auto pid = still_there(value)) resume(*pid, false);
    // A BPF program may have stopped a process before rose could note it. Therefore all processes of the folder that
    // are stopped now, and were not stopped before, are resumed.
    std::set<pid_t> stood;
    for (const std::string& value : dead.all("stood"))
      if (const auto pid = still_there(value)) stood.insert(*pid);
    for (const std::string& folder : dead.all("stops"))
      for (const pid_t pid : cgroup::processes(folder))
        if (!stood.contains(pid)) resume(pid, frozen.contains(folder));
    for (const std::string& folder : frozen) {
      if (auto thawed = cgroup::freeze(folder, false))
        healed.undone.push_back(fmt::format("cgroup {}: thawed", folder));
      else healed.failed.push_back(thawed.error().message);
    }
  }

  // Undoes only the changes that do harm until they are undone. Other nodes, namespaces, cgroups and containers are
  // left to undo(), and so is the lock file.
  void relieve(const Registration& dead) {
    at_work(dead);
    attached(dead);
    descriptors(dead);
    const std::vector<std::filesystem::path> ends = own_folders(dead, "ends");
    for (const auto& folder : ends) end_processes(folder, folder.filename() == dead.id);
    for (const auto& folder : ends) (void)cgroup::wait_empty(folder, kProcessesEnd);
    for (const auto& folder : own_folders(dead, "cgroup")) let_run(folder);
    for (const std::string& folder : dead.all("controller"))
      if (std::filesystem::path(folder).filename().native().starts_with(dead.id)) controller_folder(folder);
    volumes(dead.id);
  }

  // Removes a network namespace. With `all` (on request), also ends the processes in it. Otherwise such processes are
  // left alone: they do not belong to rose, because rose's own processes are in the run's cgroup.
  void netns(const std::string& name, bool all) {
    const std::string path = fmt::format("{}/{}", kNetnsFolder, name);
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return;
    const auto inside = processes_in_netns(path);
    std::size_t count = 0;
    if (all)
      for (const auto& [pid, pidfd] : inside) count += kernel::pidfd_signal(pidfd.get(), SIGKILL) ? 1 : 0;
    if (auto removed = remove_netns(name); !removed) {
      healed.failed.push_back(removed.error().message);
      return;
    }
    std::string line = fmt::format("network namespace {}: {}removed", name, ended_text(count));
    for (std::size_t i = 0; !all && i < std::min(inside.size(), kMostStrangers); ++i)
      line += fmt::format("; process {}, which does not belong to rose, is still in it", described(inside[i].first));
    if (!all && inside.size() > kMostStrangers) line += fmt::format(", and {} more", inside.size() - kMostStrangers);
    healed.undone.push_back(std::move(line));
  }

  void cgroup_folder(const std::filesystem::path& folder) {
    if (!std::filesystem::is_directory(folder)) return;
    const std::string label = fmt::format("cgroup {}", folder.filename().string());
    if (is_within(kernel::cgroup_folder_of(::getpid()), folder)) {
      healed.failed.push_back(fmt::format("{}: this command itself runs in it", label));
      return;
    }
    const std::size_t count = cgroup::processes(folder).size();
    // End the containers first, because the engine's processes then record how they ended and unmount their file
    // systems.
    if (const std::filesystem::path engine = folder / kEngineCgroup; cgroup::populated(engine)) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(folder, error))
        if (entry.is_directory(error) && entry.path() != engine) (void)cgroup::kill(entry.path());
      (void)cgroup::wait_empty(engine, kEngineSettles);
    }
    if (auto destroyed = cgroup::destroy(folder); !destroyed) healed.failed.push_back(destroyed.error().message);
    else healed.undone.push_back(fmt::format("{}: {}removed", label, ended_text(count)));
  }

 private:
  static void at_work(const Registration& dead) {
    const auto stat = kernel::process_stat(::getpid());
    if (dead.lock && stat) dead.note(kHealerNote, fmt::format("{} {}", ::getpid(), stat->start_ticks));
  }

  void descriptors(const Registration& dead) {
    if (const std::size_t count = restore_descriptors(dead.all("descriptors")); count > 0)
      healed.undone.push_back(fmt::format("{} process{}: descriptor limits restored", count, count == 1 ? "" : "es"));
  }

  // Those folders of the registration's entries under this key that are the run's cgroup or directly in it, without
  // duplicates.
  static std::vector<std::filesystem::path> own_folders(const Registration& dead, std::string_view key) {
    std::set<std::filesystem::path> folders;
    for (const std::string& folder : dead.all(key)) {
      const std::filesystem::path path(folder);
      if (path.filename() == dead.id || path.parent_path().filename() == dead.id) folders.insert(path);
    }
    return {folders.begin(), folders.end()};
  }

  // Ends nodes that cannot continue without rose, because their filtered calls would fail or their files are about to
  // be moved. Processes of a container engine are left alone, because they record how containers ended.
  void end_processes(const std::filesystem::path& folder, bool whole_run) {
    std::vector<std::filesystem::path> each{folder};
    if (whole_run) {
      each.clear();
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(folder, error))
        if (entry.is_directory(error) && entry.path() != folder / kEngineCgroup) each.push_back(entry.path());
    }
    std::size_t count = 0;
    for (const auto& one : each) {
      count += cgroup::processes(one).size();
      if (auto killed = cgroup::kill(one); !killed) healed.failed.push_back(killed.error().message);
    }
    if (count > 0)
      healed.undone.push_back(fmt::format("cgroup {}: {}which could not continue without rose",
                                          folder.filename().string(), ended_text(count)));
  }

  // Thaws the other nodes and removes the limits of their cgroups.
  void let_run(const std::filesystem::path& run) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(run, error)) {
      std::error_code gone;
      if (!entry.is_directory(gone)) continue;
      const std::string label = fmt::format("cgroup {}", entry.path().filename().string());
      if (cgroup::frozen(entry.path())) {
        if (auto thawed = cgroup::freeze(entry.path(), false)) healed.undone.push_back(label + ": thawed");
        else healed.failed.push_back(thawed.error().message);
      }
      for (const pid_t pid : cgroup::processes(entry.path())) resume(pid, false);
      for (const char* limit : {"memory.max", "memory.high", "cpu.max"}) {
        const auto now = read_file(entry.path() / limit, 256);
        if (now && !now->starts_with("max") && write_control(entry.path() / limit, "max"))
          healed.undone.push_back(fmt::format("{}: no limit {} any more", label, limit));
      }
    }
  }

  // Removes a folder in a v1 hierarchy whose processes have been ended.
  void controller_folder(const std::filesystem::path& folder) {
    if (!std::filesystem::is_directory(folder)) return;
    if (auto removed = kernel::dissolve(folder, folder.parent_path()); !removed)
      healed.failed.push_back(removed.error().message);
    else healed.undone.push_back(fmt::format("cgroup {}: removed", folder.string()));
  }

  // Undoes what a container engine created. The processes have been ended before.
  void engine(const std::vector<std::string>& words, const std::string& id) {
    if (words.empty()) return;
    std::string name = id;
    for (const std::string& word : words)
      if (word.starts_with(id + "-")) name = word;
    const bool volume = std::find(words.begin(), words.end(), "volume") != words.end();
    const std::string what = fmt::format("{} {}", volume ? "volume" : "container", name);
    auto removed = ask_engine(words, fmt::format("remove {}", what), kEngineRemoval);
    // If the engine has not recorded the end of a container yet, it notices the end only after a while, so removal is
    // tried again.
    if (!removed) removed = ask_engine(words, fmt::format("remove {}", what), kEngineRemoval);
    if (!removed) {
      (forget_ ? healed.forgotten : healed.failed).push_back(removed.error().message);
      healed.by_engines = healed.by_engines || !forget_;
    } else if (removed->find(name) != std::string::npos || removed->find_first_not_of(" \n") != std::string::npos) {
      healed.undone.push_back(fmt::format("{}: removed", what));
    }
  }

  // Finds mounts by the deployment's id, because nodes may have moved them.
  void volumes(const std::string& id) {
    for (const volume::Mounted& mounted : volume::of(id)) {
      const std::string where = fmt::format("file system at {}", printable(mounted.point.string()));
      const auto dissolved = volume::dissolve(mounted);
      if (!dissolved) healed.failed.push_back(dissolved.error().message);
      else if (*dissolved == volume::Dissolved::put_back)
        healed.undone.push_back(where + ": unmounted, its files put back");
      else if (*dissolved == volume::Dissolved::exchanged)
        healed.failed.push_back(where + ": unmounted; its files are lost, because somebody replaced the folder");
    }
  }

  // `pending`: the process is frozen, so a stop signal may still be pending.
  void resume(pid_t pid, bool pending) {
    const Fd pidfd = kernel::open_pidfd(pid);
    const auto stat = kernel::process_stat(pid);
    if (!pidfd || !stat || (stat->state != 'T' && !pending)) return;
    if (kernel::pidfd_signal(pidfd.get(), SIGCONT) && stat->state == 'T')
      healed.undone.push_back(fmt::format("process {}: resumed", pid));
  }

  const bool forget_;
};

void note_living(const Registration& registration, Healed& healed) {
  const auto of = [&](std::string_view key) {
    const auto values = registration.all(key);
    return values.empty() ? std::string("unknown") : values.back();
  };
  healed.alive.push_back(fmt::format("{}: belongs to the running process {}, run directory {}", registration.id,
                                     of("owner"), of("run_dir")));
}

// On request: removes everything with that name, and if it is the id of a deployment, everything with that prefix.
bool undo_named(const std::string& name, const std::filesystem::path& base, Healer& healer) {
  const std::size_t before = healer.healed.undone.size() + healer.healed.failed.size();
  healer.cgroup_folder(base / name);
  for (const std::string& each : names_in(kNetnsFolder, false))
    if (each == name || id_of(each) == name) healer.netns(each, true);
  return healer.healed.undone.size() + healer.healed.failed.size() > before;
}

}  // namespace

Healed relieve_after(pid_t owner, const std::string& except) {
  Healer healer(false);
  std::vector<Registration> found = registrations_of(owner, except);
  // Nodes that rose did not start may stay paused until this is done, so handle those of all runs first.
  for (const Registration& registration : found)
    if (!registration.alive) healer.attached(registration);
  for (const Registration& registration : found)
    if (!registration.alive) healer.relieve(registration);  // otherwise another heal is working on it
  if (std::string loopback = heal_loopback(); !loopback.empty()) healer.healed.undone.push_back(std::move(loopback));
  return std::move(healer.healed);
}

Result<Healed> heal(const std::vector<std::string>& names, bool forget) {
  for (const std::string& name : names)
    if (!name.starts_with("rose-") || name.find('/') != std::string::npos)
      return fail(ErrorKind::usage, fmt::format("'{}' is not a rose resource", name),
                  "names begin with rose-; 'rose heal' lists them");
  if (::geteuid() != 0)
    return fail(ErrorKind::environment, "heal needs root: it removes namespaces and ends processes",
                "run it with sudo");
  Healer healer(forget);
  ROSE_TRY(const std::filesystem::path base, cgroup::base());
  // List the names before the locks, so that no name of a running deployment is reported as a leftover: a deployment
  // that is created after this has no name in the list, and one that was created before has its lock.
  std::vector<std::string> netns = names_in(kNetnsFolder, false);
  std::vector<std::string> folders = names_in(base, true);
  std::set<std::string> known;  // ids with a lock file
  std::set<std::string> living;
  // The locks are held until the end, so that a concurrent heal skips the deployments on which this heal works.
  std::vector<Registration> found = registrations();
  for (const Registration& registration : found) {
    const bool chosen = names.empty() || std::find(names.begin(), names.end(), registration.id) != names.end();
    known.insert(registration.id);
    if (registration.alive) {
      living.insert(registration.id);
      // A guardian's own registration is not a deployment.
      const bool guards = registration.all("run_dir").empty() && !registration.all(kHealerNote).empty();
      if (chosen && !guards) note_living(registration, healer.healed);
      continue;
    }
    if (!chosen) continue;
    const std::size_t failures = healer.healed.failed.size();
    healer.undo(registration);
    if (healer.healed.failed.size() > failures) continue;  // tried again next time
    const std::string path = fmt::format("{}/{}.lock", kLockFolder, registration.id);
    if (::unlink(path.c_str()) != 0) healer.healed.failed.push_back(fmt::format("cannot remove {}", path));
  }
  if (std::string loopback = heal_loopback(); !loopback.empty()) healer.healed.undone.push_back(std::move(loopback));
  for (const std::string& name : names) {
    if (living.contains(id_of(name))) {
      if (!living.contains(name)) healer.healed.failed.push_back(fmt::format("{}: belongs to a running rose", name));
    } else if (!undo_named(name, base, healer) && !known.contains(name)) {
      healer.healed.failed.push_back(fmt::format("there is no namespace, cgroup or lock with the name {}", name));
    }
  }
  if (!names.empty()) return std::move(healer.healed);

  // Report what still exists and belongs to no running rose. Either no lock file listed it, or it could not be undone.
  for (const std::string& name : folders)
    if (!living.contains(id_of(name)) && std::filesystem::is_directory(base / name))
      healer.healed.unclaimed.push_back(fmt::format("cgroup {}", name));
  for (const std::string& name : netns)
    if (!living.contains(id_of(name)) && ::access(fmt::format("{}/{}", kNetnsFolder, name).c_str(), F_OK) == 0)
      healer.healed.unclaimed.push_back(fmt::format("network namespace {}", name));
  return std::move(healer.healed);
}

}  // namespace rose::deploy
