#include "deploy/volumes.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/fd.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"

namespace rose::deploy::volume {
namespace {

constexpr unsigned long kMountFlags = MS_NOSUID | MS_NODEV;
constexpr int kFillRounds = 1000;  // other processes may write between measuring and setting the size
constexpr std::int64_t kCopyTimeout = 600 * kSecond;

// Escapes a path as in mountinfo.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\\') text += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else text += c;
  }
  return text;
}

Result<void> remount(const std::filesystem::path& folder, const std::string& id, std::uint64_t bytes) {
  const std::string size = fmt::format("size={}", bytes);
  if (::mount(id.c_str(), folder.c_str(), "tmpfs", MS_REMOUNT | kMountFlags, size.c_str()) != 0)
    return fail_errno(ErrorKind::environment,
                      fmt::format("cannot change the size of the file system at {}", folder.string()), errno);
  return {};
}

}  // namespace

Result<void> make(const std::filesystem::path& folder, const std::string& id, const std::string& options) {
  struct stat was{};
  if (::stat(folder.c_str(), &was) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot read {}", folder.string()), errno);
  const std::string all = fmt::format("mode={:o},uid={},gid={}{}{}", was.st_mode & 07777, was.st_uid, was.st_gid,
                                      options.empty() ? "" : ",", options);
  if (::mount(id.c_str(), folder.c_str(), "tmpfs", kMountFlags, all.c_str()) != 0)
    return fail_errno(
        ErrorKind::environment,
        fmt::format("cannot mount a tmpfs at {}{}{}", folder.string(), options.empty() ? "" : " with ", options),
        errno);
  return {};
}

// For a Disk (deploy/disk.h): its loop device is labelled with the deployment's id.
static bool is_disk_of(const std::string& device, const std::string& id) {
  if (!device.starts_with("/dev/loop")) return false;
  const Fd loop(::open(device.c_str(), O_RDONLY | O_CLOEXEC));
  loop_info64 info{};
  return loop && ::ioctl(loop.get(), LOOP_GET_STATUS64, &info) == 0 &&
         reinterpret_cast<const char*>(info.lo_file_name) == id.substr(0, LO_NAME_SIZE - 1);
}

bool is_mounted(const std::filesystem::path& folder, const std::string& id) {
  std::ifstream file("/proc/self/mountinfo");
  std::string line;
  const std::string point = escaped(folder.string());
  while (std::getline(file, line)) {
    const auto type = line.find(" - ");
    if (type == std::string::npos) continue;
    const auto before = split(std::string_view(line).substr(0, type), ' ');
    const auto after = split(std::string_view(line).substr(type + 3), ' ');
    if (before.size() < 5 || after.size() < 2 || before[4] != point) continue;
    if ((after[0] == "tmpfs" && after[1] == id) || (after[0] == "ext4" && is_disk_of(std::string(after[1]), id)))
      return true;
  }
  return false;
}

Result<Room> room(const std::filesystem::path& folder) {
  struct statfs status{};
  if (::statfs(folder.c_str(), &status) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot read the file system at {}", folder.string()), errno);
  const auto block = static_cast<std::uint64_t>(status.f_bsize);
  return Room{status.f_blocks * block, (status.f_blocks - status.f_bfree) * block};
}

Result<Room> fill(const std::filesystem::path& folder, const std::string& id) {
  Result<void> done;
  for (int round = 0; round < kFillRounds; ++round) {
    ROSE_TRY(const Room now, room(folder));
    // Size 0 would mean unlimited.
    const std::uint64_t bytes = std::max<std::uint64_t>(now.used, static_cast<std::uint64_t>(::getpagesize()));
    done = remount(folder, id, bytes);
    if (!done && errno == EINVAL) continue;
    if (!done) break;
    ROSE_TRY(const Room after, room(folder));
    if (after.bytes == bytes) return after;
  }
  if (!done) return Unexpected(std::move(done).error());
  return fail(ErrorKind::inconclusive,
              fmt::format("the file system at {} cannot be filled: its files change too fast", folder.string()));
}

Result<void> resize(const std::filesystem::path& folder, const std::string& id, std::uint64_t bytes) {
  ROSE_CHECK(remount(folder, id, bytes));
  ROSE_TRY(const Room now, room(folder));
  if (now.bytes < bytes)
    return fail(ErrorKind::environment,
                fmt::format("the file system at {} has {} bytes instead of {}", folder.string(), now.bytes, bytes));
  return {};
}

Result<void> copy_files(const std::filesystem::path& from, const std::filesystem::path& to) {
  auto output = run_command({"cp", "-a", "--sparse=auto", "--", from.string(), to.string()}, {}, kCopyTimeout);
  if (!output)
    return Unexpected(std::move(output).error().in(fmt::format("the files at {} cannot be copied", from.string())));
  if (output->exit_code == 0) return {};
  return fail(ErrorKind::environment, fmt::format("the files at {} cannot be copied: {}", from.string(),
                                                  output->err.substr(0, output->err.find('\n'))));
}

Result<void> dissolve(const std::filesystem::path& folder, const std::string& id) {
  if (!is_mounted(folder, id)) return {};
  // Copied beside it, then renamed in one step.
  const std::filesystem::path copy = folder.parent_path() / fmt::format(".{}.copy", id);
  std::error_code bad;
  std::filesystem::remove_all(copy, bad);
  Result<void> copied = copy_files(folder, copy);
  if (::umount2(folder.c_str(), UMOUNT_NOFOLLOW) != 0 &&
      (errno != EBUSY || ::umount2(folder.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0))
    return fail_errno(ErrorKind::environment, fmt::format("cannot unmount {}", folder.string()), errno);
  // Files that stayed outside a disk (deploy/disk.h) were copied too.
  if (copied)
    for (const auto& entry : std::filesystem::directory_iterator(folder, bad))
      std::filesystem::remove(entry.path(), bad);
  // Keep what could be copied, even if something is missing.
  if (std::filesystem::exists(copy, bad) && ::rename(copy.c_str(), folder.c_str()) != 0 && copied)
    copied = fail_errno(ErrorKind::environment,
                        fmt::format("cannot restore {}; its files are in {}", folder.string(), copy.string()), errno);
  return copied;
}

}  // namespace rose::deploy::volume
