#include "deploy/disk.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>

#include "base/log.h"
#include "base/read_at.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/volumes.h"

namespace rose::deploy {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long kDiskFlags = MS_NOSUID | MS_NODEV;
// Prevents the kernel from writing on its own as far as possible: the journal is written only on a sync, and a rename
// does not sync. (Other file systems guarantee no more.) Dirty pages older than vm.dirty_expire_centisecs are still
// written.
constexpr const char* kMountOptions = "commit=3600,noauto_da_alloc,noinit_itable";
constexpr off_t kImageBytes = off_t{8} << 30;  // sparse
constexpr std::size_t kSector = 512;
constexpr std::uint64_t kMostTorn = std::uint64_t{4} << 30;  // per file
constexpr int kLoopAttempts = 64;
constexpr std::int64_t kFormatTimeout = 60 * kSecond;

// EXT4_IOC_SHUTDOWN, which no user-space header defines; kNoFlush does not write the journal, as in a power loss.
constexpr unsigned long kShutdown = _IOR('X', 125, std::uint32_t);
constexpr std::uint32_t kNoFlush = 2;

std::string mke2fs() { return ::access("/usr/sbin/mke2fs", X_OK) == 0 ? "/usr/sbin/mke2fs" : "mke2fs"; }

struct LoopDevice {
  std::string path;
  Fd fd;  // keeps the device; once mounted, the mount does
};

// `direct`: nothing is cached below the file system, so that each of its requests reaches the image.
Result<LoopDevice> attach_loop(int image, const std::string& id, bool direct) {
  const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return fail_errno(ErrorKind::environment, "cannot open /dev/loop-control", errno);
  int problem = EBUSY;
  for (int attempt = 0; attempt < kLoopAttempts; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return fail_errno(ErrorKind::environment, "there is no free loop device", errno);
    LoopDevice device{fmt::format("/dev/loop{}", number), {}};
    device.fd = Fd(::open(device.path.c_str(), O_RDWR | O_CLOEXEC));
    if (!device.fd) return fail_errno(ErrorKind::environment, fmt::format("cannot open {}", device.path), errno);
    loop_config config{};
    config.fd = static_cast<__u32>(image);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | (direct ? LO_FLAGS_DIRECT_IO : 0);
    id.copy(reinterpret_cast<char*>(config.info.lo_file_name), LO_NAME_SIZE - 1);
    if (::ioctl(device.fd.get(), LOOP_CONFIGURE, &config) == 0) return device;
    problem = errno;
    if (problem != EBUSY) break;  // another process took it meanwhile
  }
  return fail_errno(ErrorKind::environment, "cannot set up a loop device", problem);
}

struct FileState {
  std::uint64_t size = 0;
  std::int64_t written_ns = 0;
};

// The regular files in a folder, by relative path.
std::map<std::string, FileState> files_of(const fs::path& folder) {
  std::map<std::string, FileState> all;
  std::error_code bad;
  for (fs::recursive_directory_iterator at(folder, bad), end; !bad && at != end; at.increment(bad)) {
    struct stat info{};
    if (::lstat(at->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    all.emplace(
        at->path().lexically_relative(folder).string(),
        FileState{static_cast<std::uint64_t>(info.st_size), info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec});
  }
  return all;
}

// Writes some of the sectors in which `whole` differs from the file on the disk. Returns true if there were any.
bool tear(const fs::path& whole, const fs::path& on_disk, const Torn& torn) {
  const Fd from(::open(whole.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  const Fd to(::open(on_disk.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info{};
  if (!from || !to || ::fstat(from.get(), &info) != 0) return false;
  const std::uint64_t size = std::min(static_cast<std::uint64_t>(info.st_size), kMostTorn);
  std::vector<std::uint64_t> differ;
  char written[kSector], there[kSector];
  for (std::uint64_t at = 0; at < size; at += kSector) {
    const std::size_t n = read_at(from.get(), written, kSector, at);
    if (read_at(to.get(), there, kSector, at) < n || std::memcmp(written, there, n) != 0) differ.push_back(at);
  }
  const double share = torn.share;
  const auto kept = [&](std::size_t count) {
    return static_cast<std::size_t>(std::floor(static_cast<double>(count) * share));
  };
  bool any = false;
  for (std::size_t i = 0; i < differ.size(); ++i) {
    const bool keep = torn.in_order ? i < kept(differ.size()) : kept(i + 1) > kept(i);
    if (!keep) continue;
    const std::size_t n = read_at(from.get(), written, kSector, differ[i]);
    any = ::pwrite(to.get(), written, n, static_cast<off_t>(differ[i])) == static_cast<ssize_t>(n) || any;
  }
  return any;
}

}  // namespace

Result<void> Disk::check() {
  const std::string hint =
      "power loss is simulated with an ext4 file system on a loop device: the kernel modules loop and ext4, and mke2fs "
      "(package e2fsprogs), are needed";
  if (::access("/dev/loop-control", R_OK | W_OK) != 0)
    return fail(ErrorKind::environment,
                fmt::format("there are no loop devices: /dev/loop-control: {}", std::strerror(errno)), hint);
  if (const auto made = run_command({mke2fs(), "-V"}, {}, kFormatTimeout); !made || made->exit_code != 0)
    return fail(ErrorKind::environment, "mke2fs cannot be run", hint);
  return {};
}

Result<Disk> Disk::make(const fs::path& folder, const std::string& id, const std::vector<std::string>& outside,
                        bool paced) {
  static std::atomic<unsigned> made{0};
  Disk disk;
  disk.folder_ = folder;
  disk.id_ = id;
  struct stat was{};
  if (::stat(folder.c_str(), &was) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot read {}", folder.string()), errno);
  const fs::path file = folder.parent_path() / fmt::format(".{}.{}.disk", id, made++);
  disk.image_ = Fd(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!disk.image_) return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", file.string()), errno);
  Result<void> formatted;
  if (::ftruncate(disk.image_.get(), kImageBytes) != 0) {
    formatted = fail_errno(ErrorKind::environment, fmt::format("cannot set the size of {}", file.string()), errno);
  } else {
    const auto output = run_command(
        {mke2fs(), "-q", "-F", "-t", "ext4", "-m", "0", "-J", "size=16", "-E",
         fmt::format("nodiscard,lazy_itable_init=1,lazy_journal_init=1,root_owner={}:{}", was.st_uid, was.st_gid),
         file.string()},
        {}, kFormatTimeout);
    if (!output) formatted = Unexpected(output.error());
    else if (output->exit_code != 0)
      formatted = fail(ErrorKind::environment, fmt::format("mke2fs cannot create a file system: {}",
                                                           output->err.substr(0, output->err.find('\n'))));
  }
  if (::unlink(file.c_str()) != 0 && formatted)
    formatted = fail_errno(ErrorKind::environment, fmt::format("cannot remove {}", file.string()), errno);
  if (!formatted) return Unexpected(std::move(formatted).error());
  if (paced) {
    ROSE_TRY(disk.paced_, PacedFile::make(file, disk.image_.get()));
  }
  for (const std::string& name : outside) {
    Fd fd(::open((folder / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd || ::fchown(fd.get(), was.st_uid, was.st_gid) != 0)
      return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", (folder / name).string()), errno);
    disk.outside_.push_back({name, std::move(fd)});
  }
  ROSE_CHECK(disk.mount());
  std::error_code absent;
  fs::remove(folder / "lost+found", absent);
  if (::chmod(folder.c_str(), was.st_mode & 07777) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot set the mode of {}", folder.string()), errno);
  const Fd top(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top || ::syncfs(top.get()) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot sync the file system at {}", folder.string()), errno);
  return disk;
}

Result<void> Disk::mount() const {
  ROSE_TRY(const LoopDevice device, attach_loop(paced_ ? paced_->fd() : image_.get(), id_, paced_ != nullptr));
  if (::mount(device.path.c_str(), folder_.c_str(), "ext4", kDiskFlags, kMountOptions) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot mount {} at {}", device.path, folder_.string()),
                      errno);
  for (const Outside& one : outside_) {
    const fs::path at = folder_ / one.name;
    const Fd made(::open(at.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!made ||
        ::mount(fmt::format("/proc/self/fd/{}", one.fd.get()).c_str(), at.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return fail_errno(ErrorKind::environment, fmt::format("cannot keep the content of {}", at.string()), errno);
  }
  return {};
}

Result<PowerLoss> Disk::lose(const Torn& torn) const {
  const Fd top(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top) return fail_errno(ErrorKind::environment, fmt::format("cannot read {}", folder_.string()), errno);
  auto before = files_of(folder_);
  for (const Outside& one : outside_) before.erase(one.name);
  const fs::path whole = folder_.parent_path() / fmt::format(".{}.whole", id_);
  std::error_code ignored;
  fs::remove_all(whole, ignored);
  if (torn.share > 0) {
    if (auto copied = volume::copy_files(folder_, whole); !copied) {
      fs::remove_all(whole, ignored);
      return Unexpected(std::move(copied).error());
    }
  }
  std::uint32_t how = kNoFlush;
  if (::ioctl(top.get(), kShutdown, &how) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot shut the file system at {} down", folder_.string()),
                      errno);
  if (::umount2(folder_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot unmount {}", folder_.string()), errno);
  // On another loop device: the kernel considers the old one in use as long as a process has one of its files open.
  ROSE_CHECK(mount());

  PowerLoss loss;
  for (const auto& [name, state] : before) {
    if (torn.share > 0 && tear(whole / name, folder_ / name, torn)) ++loss.torn;
    struct stat info{};
    if (::lstat((folder_ / name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      ++loss.gone;
      loss.bytes += state.size;
    } else if (static_cast<std::uint64_t>(info.st_size) < state.size) {
      ++loss.shorter;
      loss.bytes += state.size - static_cast<std::uint64_t>(info.st_size);
    } else if (info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec != state.written_ns) {
      ++loss.older;
    }
  }
  fs::remove_all(whole, ignored);
  const Fd again(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (torn.share > 0 && again) (void)::syncfs(again.get());  // sync it, so that the torn state is permanent
  return loss;
}

}  // namespace rose::deploy
