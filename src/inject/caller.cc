#include "inject/caller.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/result.h"
#include "base/thread.h"
#include "kernel/capability_sets.h"

namespace rose::inject {
namespace {

constexpr std::size_t kMostStatusBytes = std::size_t{1} << 20;  // for up to 65,536 groups

bool set_effective(std::uint64_t bits) {
  kernel::CapabilitySets sets;
  if (!kernel::get_capabilities(sets)) return false;
  sets.effective = sets.permitted & bits;
  return kernel::set_capabilities(sets);
}

// Uses the raw system call, because it changes only this thread. The C library's function changes all threads of the
// process.
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}
bool set_fsuid(uid_t uid) {
  ::syscall(SYS_setfsuid, uid);
  return static_cast<uid_t>(::syscall(SYS_setfsuid, -1)) == uid;
}
bool set_fsgid(gid_t gid) {
  ::syscall(SYS_setfsgid, gid);
  return static_cast<gid_t>(::syscall(SYS_setfsgid, -1)) == gid;
}

std::optional<ino_t> user_namespace(const std::string& process) {
  struct stat info{};
  if (::stat((process + "/ns/user").c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

std::optional<CallerRights> rights_in(const std::string& process) {
  const auto status = read_file(process + "/status", kMostStatusBytes);
  const auto users = user_namespace(process);
  if (!status || !users) return std::nullopt;
  CallerRights rights;
  std::istringstream lines(*status);
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    std::uint64_t skipped = 0;
    if (key == "Uid:") found += static_cast<bool>(words >> rights.uid >> skipped >> skipped >> rights.fsuid) ? 1 : 0;
    if (key == "Gid:") found += static_cast<bool>(words >> rights.gid >> skipped >> skipped >> rights.fsgid) ? 1 : 0;
    if (key == "Groups:")
      for (gid_t group = 0; words >> group;) rights.groups.push_back(group);
    if (key == "CapEff:") found += static_cast<bool>(words >> std::hex >> rights.capabilities) ? 1 : 0;
  }
  if (found != 3) return std::nullopt;
  if (users != user_namespace("/proc/thread-self")) rights.capabilities = 0;
  return rights;
}

}  // namespace

std::optional<CallerRights> rights_of(pid_t tid) { return rights_in(fmt::format("/proc/{}", tid)); }

std::optional<CallerRights> own_rights() { return rights_in("/proc/thread-self"); }

AsCaller::AsCaller(const CallerRights& rights, const CallerRights& own, std::uint64_t kept) : own_(own) {
  ok_ = take_on(rights, kept);
  if (!ok_) give_back();
}

AsCaller::~AsCaller() {
  if (ok_) give_back();
}

bool AsCaller::take_on(const CallerRights& rights, std::uint64_t kept) {
  // Changing the user drops capabilities, so set the capabilities last.
  return set_groups(rights.groups) && set_fsgid(rights.fsgid) && set_fsuid(rights.fsuid) &&
         set_effective((rights.capabilities | kept) & own_.capabilities);
}

void AsCaller::give_back() {
  const bool back = set_effective(~std::uint64_t{0}) && set_fsuid(own_.fsuid) && set_fsgid(own_.fsgid) &&
                    set_groups(own_.groups) && set_effective(own_.capabilities);
  if (!back) ROSE_BUG("a thread that acted as another user cannot restore its own identity");
}

std::optional<CallerView> view_of(pid_t tid) {
  const auto open = [tid](const char* what, int flags) {
    return Fd(::open(fmt::format("/proc/{}/{}", tid, what).c_str(), flags | O_CLOEXEC));
  };
  CallerView view{open("ns/mnt", O_RDONLY), open("root", O_PATH | O_DIRECTORY), open("cwd", O_PATH | O_DIRECTORY)};
  if (!view.mounts || !view.root || !view.folder) return std::nullopt;
  return view;
}

bool with_view(const CallerView& view, const std::function<void()>& work) {
  bool entered = false;
  auto inside = start_thread([&] {
    // CLONE_FS gives this thread its own root and current folder, so that other threads keep theirs.
    if (::unshare(CLONE_FS) != 0 || ::setns(view.mounts.get(), CLONE_NEWNS) != 0 || ::fchdir(view.root.get()) != 0 ||
        ::chroot(".") != 0 || ::fchdir(view.folder.get()) != 0)
      return;
    entered = true;
    work();
  });
  if (inside) inside->join();
  return entered;
}

}  // namespace rose::inject
