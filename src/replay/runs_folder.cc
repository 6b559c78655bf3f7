#include "replay/runs_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "base/folder.h"
#include "base/log.h"
#include "deploy/names.h"

namespace rose::replay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAskedFor = ".kept";    // this file marks a folder that is kept because the user requested it
constexpr const char* kCommand = ".command";  // this file contains the name of the command whose runs are in the folder
constexpr std::size_t kMostName = 64;

std::string command_of(const fs::path& folder) { return read_inside(folder, kCommand, kMostName).value_or(""); }

void mark(const fs::path& file, std::string_view text) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd && !text.empty() && ::write(fd.get(), text.data(), text.size()) < 0)
    log::debug("cannot write {}: {}", file.string(), std::strerror(errno));
}

Fd locked(const fs::path& folder, int how) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && ::flock(fd.get(), how | LOCK_NB) != 0) fd.reset();
  return fd;
}

void clear_old(const fs::path& parent, std::string_view command) {
  struct Old {
    std::time_t changed = 0;
    fs::path path;
    bool asked_for = false;
  };
  std::vector<Old> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    struct stat info{};
    if (::lstat(entry.path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    if (const std::string other = command_of(entry.path()); other.empty() || other == command)
      found.push_back({info.st_mtime, entry.path(), fs::exists(fs::symlink_status(entry.path() / kAskedFor, error))});
  }
  std::sort(found.begin(), found.end(), [](const Old& a, const Old& b) { return a.changed > b.changed; });
  std::size_t others = 0;  // number of folders that are kept although nobody requested it
  const std::time_t oldest = std::time(nullptr) - std::time_t{kKeptDays} * 24 * 3600;
  for (const Old& one : found) {
    const bool newest = one.asked_for || others++ < kKeptFolders;
    if (newest && one.changed >= oldest) continue;
    if (const Fd lock = locked(one.path, LOCK_EX); lock) remove_runs(one.path);
  }
}

fs::path parent_in(const fs::path& temporary) {
  return temporary / (::geteuid() == 0 ? std::string("rose-runs") : fmt::format("rose-runs-{}", ::geteuid()));
}

Result<RunsFolder> made(const fs::path& folder) {
  // Nodes may run as another user. They must be able to pass through this folder, but not to list it.
  ::chmod(folder.c_str(), 0711);
  return RunsFolder{folder, locked(folder, LOCK_SH)};
}

Unexpected not_made(const fs::path& parent, int error) {
  return fail_errno(ErrorKind::environment, fmt::format("cannot create a folder for runs in {}", parent.string()),
                    error);
}

// Makes a folder in a folder that others can write to, so its name must be unpredictable.
Result<RunsFolder> made_among_others(const fs::path& parent) {
  std::string name = (parent / "rose-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return not_made(parent, errno);
  return made(name);
}

Result<RunsFolder> made_in_own(const fs::path& parent) {
  for (;;) {
    const fs::path folder = parent / unforeseen_name("");
    if (::mkdir(folder.c_str(), 0711) == 0) return made(folder);
    if (errno != EEXIST) return not_made(parent, errno);
  }
}

// True if another user could rename entries of this folder, or replace rose's folder in it.
bool is_anybodys(const fs::path& temporary) {
  struct stat info{};
  return ::stat(temporary.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0;
}

}  // namespace

std::string unforeseen_name(std::string_view prefix) {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
  }
  // keep the name short, because the path of a socket has at most 107 bytes
  return fmt::format("{}{:010}", prefix, number % 10'000'000'000);
}

std::vector<fs::path> in_runs_folders(const fs::path& temporary, const std::string& name) {
  std::vector<fs::path> found;
  const fs::path parent = parent_in(temporary);
  if (!is_own_folder(parent)) return found;
  std::error_code gone;  // folders may be removed meanwhile
  for (const auto& folder : fs::directory_iterator(parent, gone)) {
    for (const auto& run : fs::directory_iterator(folder.path(), gone)) {
      if (fs::exists(fs::symlink_status(run.path() / name, gone))) found.push_back(run.path() / name);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void keep_runs_folder(const fs::path& folder, bool asked_for, std::string_view command) {
  if (asked_for) mark(folder / kAskedFor, "");
  if (!command.empty()) mark(folder / kCommand, command.substr(0, kMostName));
}

Result<RunsFolder> make_runs_folder(const fs::path& temporary, std::string_view command) {
  const fs::path parent = parent_in(temporary);
  if (is_anybodys(temporary))
    return fail(
        ErrorKind::environment,
        fmt::format("others may rename what is in {}, so the folders of runs cannot be there", temporary.string()),
        fmt::format("chmod +t {}, or name another folder: TMPDIR, or --report", temporary.string()));
  if (::mkdir(parent.c_str(), 0711) == 0) ::chmod(parent.c_str(), 0711);
  if (!is_own_folder(parent)) return made_among_others(temporary);
  auto folder = made_in_own(parent);
  clear_old(parent, command);
  return folder;
}

void remove_run(const fs::path& run) {
  if (auto left = deploy::leave_shared(run); !left) log::debug("{}", left.error().message);
  remove_tree(run);
}

void remove_runs(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.is_symlink(error)) remove_run(entry.path());
  remove_tree(folder);
}

}  // namespace rose::replay
