#include "deploy/heal.h"

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
#include "base/text.h"
#include "deploy/cgroup.h"
#include "deploy/control.h"
#include "deploy/identity.h"
#include "deploy/network.h"
#include "deploy/processes.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::deploy {
namespace {

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
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

// Processes in a namespace but in no cgroup of rose's: somebody entered it by hand.
std::size_t end_processes_in(ino_t inode) {
  std::size_t ended = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    if (pid <= 0) continue;
    // The descriptor first: the number cannot change hands after it.
    const Fd pidfd = kernel::open_pidfd(pid);
    if (pidfd && netns_inode(fmt::format("/proc/{}/ns/net", pid)) == inode && kernel::pidfd_signal(pidfd.get(), SIGKILL)) ++ended;
  }
  return ended;
}

class Healer {
 public:
  void netns(const std::string& name) {
    const std::string path = fmt::format("{}/{}", kNetnsFolder, name);
    struct statfs filesystem {};
    std::size_t ended = 0;
    if (::statfs(path.c_str(), &filesystem) == 0 && filesystem.f_type == NSFS_MAGIC) {
      const ino_t inode = netns_inode(path);
      // A name that was bound to the machine's own namespace must not end the machine.
      if (inode != netns_inode("/proc/self/ns/net") && inode != netns_inode("/proc/1/ns/net"))
        ended = end_processes_in(inode);
    }
    note(remove_netns(name), fmt::format("network namespace {}", name), ended);
  }

  void cgroup_folder(const std::filesystem::path& folder) {
    if (!std::filesystem::is_directory(folder)) return;
    const std::string label = fmt::format("cgroup {}", folder.filename().string());
    const std::filesystem::path own = kernel::cgroup_folder_of(::getpid());
    if (own == folder || own.string().starts_with(folder.string() + "/")) {
      healed.failed.push_back(fmt::format("{}: this command runs in it itself", label));
      return;
    }
    const std::size_t ended = cgroup::processes(folder).size();
    note(cgroup::destroy(folder), label, ended);
  }

  // What was done to processes that are not rose's own: they live on, running.
  void attached(const Registration& registration) {
    std::set<std::string> frozen;
    for (const auto& [key, value] : registration.notes) {
      if (key == "frozen") frozen.insert(value);
      if (key == "thawed") frozen.erase(value);
      if (key != "stopped") continue;
      const std::vector<std::string> parts = split(value, ' ');
      pid_t pid = 0;
      std::from_chars(value.data(), value.data() + value.size(), pid);
      if (parts.size() != 2 || pid <= 0) continue;
      const Fd pidfd = kernel::open_pidfd(pid);
      const auto stat = kernel::process_stat(pid);
      if (!pidfd || !stat || stat->state != 'T' || std::to_string(stat->start_ticks) != parts[1]) continue;
      if (kernel::pidfd_signal(pidfd.get(), SIGCONT)) healed.undone.push_back(fmt::format("process {}: resumed", pid));
    }
    for (const std::string& folder : frozen) {
      if (!std::filesystem::is_directory(folder) || !cgroup::frozen(folder)) continue;
      if (auto thawed = cgroup::freeze(folder, false))
        healed.undone.push_back(fmt::format("cgroup {}: thawed", folder));
      else
        healed.failed.push_back(thawed.error().message);
    }
  }

  Healed healed;

 private:
  void note(const Result<void>& done, const std::string& label, std::size_t ended) {
    if (!done)
      healed.failed.push_back(done.error().message);
    else if (ended == 0)
      healed.undone.push_back(fmt::format("{}: removed", label));
    else
      healed.undone.push_back(fmt::format("{}: ended {} process{}, removed", label, ended, ended == 1 ? "" : "es"));
  }
};

}  // namespace

Result<Healed> heal_chosen(const std::function<bool(std::string_view id)>& chosen) {
  if (::geteuid() != 0)
    return fail(ErrorKind::environment, "heal needs root: it removes namespaces and ends processes", "run it with sudo");
  Healer healer;
  std::set<std::string> living;
  std::set<std::filesystem::path> folders;
  // Kept until the end, so that a second heal leaves what this one is at.
  std::vector<Registration> dead;

  // Names before locks: a deployment made after this look is not among them, one made before it has its lock.
  std::vector<std::string> netns = names_in(kNetnsFolder, false);
  if (const auto base = cgroup::base())
    for (const std::string& name : names_in(*base, true)) folders.insert(*base / name);

  for (Registration& registration : registrations()) {
    if (!chosen(registration.id)) continue;
    if (registration.alive) {
      living.insert(registration.id);
      std::string owner = "unknown";
      std::string run_dir = "unknown";
      for (const auto& [key, value] : registration.notes) {
        if (key == "owner") owner = value;
        if (key == "run_dir") run_dir = value;
      }
      healer.healed.alive.push_back(
          fmt::format("{}: belongs to the running process {}, run directory {}", registration.id, owner, run_dir));
      continue;
    }
    for (const auto& [key, value] : registration.notes)
      if (key == "cgroup") folders.insert(value);
    dead.push_back(std::move(registration));
  }
  const auto leftover = [&](std::string_view name) {
    const std::string id = id_of(name);
    return chosen(id) && !living.contains(id);
  };

  for (const Registration& registration : dead) healer.attached(registration);
  for (const std::filesystem::path& folder : folders)
    if (leftover(folder.filename().native())) healer.cgroup_folder(folder);
  for (const std::string& name : netns)
    if (leftover(name)) healer.netns(name);
  for (const Registration& registration : dead) {
    for (const auto& [key, value] : registration.notes) {
      if (key != "run_dir") continue;
      const std::filesystem::path socket = std::filesystem::path(value) / kControlSocket;
      if (::unlink(socket.c_str()) == 0) healer.healed.undone.push_back(fmt::format("control socket {}: removed", socket.string()));
    }
    // What could not be undone is tried again next time.
    if (!healer.healed.failed.empty()) continue;
    const std::string path = fmt::format("{}/{}.lock", kLockFolder, registration.id);
    if (::unlink(path.c_str()) != 0) healer.healed.failed.push_back(fmt::format("cannot remove {}", path));
  }
  return std::move(healer.healed);
}

Result<Healed> heal() {
  return heal_chosen([](std::string_view) { return true; });
}

}  // namespace rose::deploy
