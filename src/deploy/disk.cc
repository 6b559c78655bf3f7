#include "deploy/disk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/read_at.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/volumes.h"

namespace rose::deploy {
namespace {

namespace fs = std::filesystem;

// Disables what the kernel would write by itself, as far as that is possible: the journal is written only when a
// program syncs, and a rename syncs nothing. (Other file systems guarantee no more than that.) Dirty pages older than
// vm.dirty_expire_centisecs are still written.
constexpr const char* kMountOptions = "commit=3600,noauto_da_alloc,noinit_itable";
constexpr off_t kImageBytes = off_t{8} << 30;  // sparse
constexpr std::size_t kSector = 512;
constexpr std::uint64_t kMostTorn = std::uint64_t{4} << 30;  // largest size of a file whose sectors may be torn
constexpr int kLoopAttempts = 64;
constexpr std::int64_t kFormatTimeout = 60 * kSecond;

// EXT4_IOC_SHUTDOWN, which no header of user space defines. With kNoFlush, it stops the file system as a power loss
// would, without flushing the journal.
constexpr unsigned long kShutdown = _IOR('X', 125, std::uint32_t);
constexpr std::uint32_t kNoFlush = 2;

std::string mke2fs() { return ::access("/usr/sbin/mke2fs", X_OK) == 0 ? "/usr/sbin/mke2fs" : "mke2fs"; }

struct LoopDevice {
  std::string path;
  Fd fd;  // the device exists while this is open, and afterwards as long as it is mounted
};

// `direct`: the loop device uses direct I/O, so that each request of the file system becomes one request to the image.
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

// The regular files, by their paths in the folder.
std::map<std::string, FileState> files_of(const OpenFolder& folder) {
  std::map<std::string, FileState> all;
  folder.each([&](const OpenFolder::Entry& entry) {
    const struct stat& info = entry.status;
    if (S_ISREG(info.st_mode))
      all.emplace(entry.inside.string(), FileState{static_cast<std::uint64_t>(info.st_size),
                                                   info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec});
    return true;
  });
  return all;
}

// Identity and owner of a file.
struct TornFile {
  ino_t number = 0;
  int generation = 0;  // random; differs each time an inode number is reused
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;
  bool operator==(const TornFile&) const = default;
};
std::optional<TornFile> torn_file_of(int fd) {
  struct stat info{};
  TornFile source;
  if (::fstat(fd, &info) != 0 || ::ioctl(fd, FS_IOC_GETVERSION, &source.generation) != 0) return std::nullopt;
  source.number = info.st_ino;
  source.uid = info.st_uid;
  source.gid = info.st_gid;
  source.mode = info.st_mode;
  return source;
}

// Writes some of the sectors in which `from` (a copy of `source`) differs from what is on the disk. Returns true if it
// wrote any. Writes only if `to` is still the same file as `source`: the node may rename files, so the name may now
// refer to another file, perhaps a file of root. An inode number may be reused, but not with the same generation.
bool tear(const Fd& from, const TornFile& source, const Fd& to, const Torn& torn) {
  struct stat info{};
  if (!from || !to || ::fstat(from.get(), &info) != 0) return false;
  const std::optional<TornFile> target = torn_file_of(to.get());
  if (!target || *target != source || (source.mode & (S_ISUID | S_ISGID)) != 0) return false;
  const auto size = static_cast<off_t>(std::min(static_cast<std::uint64_t>(info.st_size), kMostTorn));
  std::vector<std::uint64_t> differ;
  char written[kSector], there[kSector];
  for (off_t begin = 0; begin < size;) {  // skip holes, which may be far larger than the disk
    begin = ::lseek(from.get(), begin, SEEK_DATA);
    if (begin < 0 || begin >= size) break;
    const off_t hole = ::lseek(from.get(), begin, SEEK_HOLE);
    const off_t end = hole < 0 ? size : std::min(hole, size);
    for (begin -= begin % static_cast<off_t>(kSector); begin < end; begin += static_cast<off_t>(kSector)) {
      const auto at = static_cast<std::uint64_t>(begin);
      const std::size_t n = read_at(from.get(), written, kSector, at);
      if (read_at(to.get(), there, kSector, at) < n || std::memcmp(written, there, n) != 0) differ.push_back(at);
    }
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
      "power loss uses an ext4 file system on a loop device: it needs the kernel modules loop and ext4, and mke2fs "
      "(package e2fsprogs)";
  if (::access("/dev/loop-control", R_OK | W_OK) != 0)
    return fail(ErrorKind::environment,
                fmt::format("there are no loop devices: /dev/loop-control: {}", std::strerror(errno)), hint);
  if (const auto made = run_command({mke2fs(), "-V"}, {}, kFormatTimeout); !made || made->exit_code != 0)
    return fail(ErrorKind::environment, "mke2fs cannot be run", hint);
  return {};
}

Result<Disk> Disk::make(OpenFolder at, const OpenFolder& own, const std::string& id,
                        const std::vector<std::string>& outside, bool paced) {
  static std::atomic<unsigned> made{0};
  ROSE_TRY(const struct stat was, at.status());
  const std::string name = fmt::format("{}.disk", made++);
  const fs::path file = own.path() / name;
  Disk disk(std::move(at), OpenFolder(Fd(::fcntl(own.fd(), F_DUPFD_CLOEXEC, 0)), own.path()), id);
  ROSE_TRY(disk.image_, own.create(name, {}, 0600));
  Result<void> formatted;
  if (::ftruncate(disk.image_.get(), kImageBytes) != 0) {
    formatted = fail_errno(ErrorKind::environment, fmt::format("cannot give {} its size", file.string()), errno);
  } else {
    // mke2fs gets the image's name, which is safe because only root may enter its folder.
    const auto output = run_command(
        {mke2fs(), "-q", "-F", "-t", "ext4", "-m", "0", "-J", "size=16", "-E",
         fmt::format("nodiscard,lazy_itable_init=1,lazy_journal_init=1,root_owner={}:{}", was.st_uid, was.st_gid),
         file.string()},
        {}, kFormatTimeout);
    if (!output) formatted = Unexpected(output.error());
    else if (output->exit_code != 0)
      formatted = fail(ErrorKind::environment, fmt::format("mke2fs cannot make a file system: {}",
                                                           output->err.substr(0, output->err.find('\n'))));
  }
  if (auto removed = own.remove(name); !removed && formatted) formatted = std::move(removed);
  if (!formatted) return Unexpected(std::move(formatted).error());
  if (paced) {
    ROSE_TRY(disk.paced_, PacedFile::make(file, disk.image_.get()));
  }
  for (const std::string& outer : outside) {
    ROSE_TRY(Fd fd, disk.outside_file(outer, was));
    disk.outside_.push_back({outer, std::move(fd)});
  }
  const Result<void> mounted = disk.mount([&](const OpenFolder& top) -> Result<void> {
    if (auto removed = top.remove("lost+found"); !removed) return removed;
    return top.give({was.st_uid, was.st_gid}, was.st_mode & 07777);
  });
  if (!mounted) return Unexpected(mounted.error());
  return disk;
}

// Creates a file that is kept outside the disk, or opens it if the node's user has already created it.
Result<Fd> Disk::outside_file(const std::string& name, const struct stat& folder) const {
  if (auto made = at_.create(name, Owner{folder.st_uid, folder.st_gid}, 0644)) return made;
  Fd fd = at_.file_to_change(name);
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_uid != folder.st_uid)
    return fail(ErrorKind::environment, fmt::format("{} is not a file of the node", (at_.path() / name).string()));
  return fd;
}

// `prepare` is called while only rose can reach the file system.
Result<void> Disk::mount(const std::function<Result<void>(const OpenFolder& top)>& prepare) {
  ROSE_TRY(const LoopDevice device, attach_loop(paced_ ? paced_->fd() : image_.get(), id_, paced_ != nullptr));
  const auto in = [&](Error error) { return std::move(error).in(fmt::format("a disk at {}", folder().string())); };
  ROSE_TRY(const Fd mount, volume::make_detached("ext4", device.path, kMountOptions).map_error(in));
  OpenFolder top(Fd(::openat(mount.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), folder());
  ROSE_CHECK(prepare(top));
  // From here on, the files can be rescued if a later step fails.
  const OpenFolder& held = top_.emplace(std::move(top));
  std::vector<Fd> points;  // the files on the disk over which the outside files are mounted
  for (const Outside& one : outside_) {
    Fd point = held.at(one.name);
    struct stat info{};
    if (!point || ::fstat(point.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      // The node has put something else at this name, perhaps even a folder of root. It is renamed to a name that the
      // node cannot predict.
      std::uint64_t random = 0;
      if (::getrandom(&random, sizeof random, 0) != sizeof random)
        return fail_errno(ErrorKind::environment, "getrandom", errno);
      const std::string aside = fmt::format("{}.{:016x}", one.name, random);
      if (point) ROSE_CHECK(held.rename(one.name, held, aside));
      ROSE_TRY([[maybe_unused]] const Fd made, held.create(one.name, {}, 0644));
      point = held.at(one.name);
    }
    points.push_back(std::move(point));
  }
  ROSE_CHECK(sync());
  ROSE_CHECK(volume::mark(at_, id_));
  ROSE_CHECK(volume::attach(mount.get(), at_.fd()).map_error(in));
  for (std::size_t i = 0; i < outside_.size(); ++i) {
    const Fd file(::open_tree(outside_[i].fd.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!file || !volume::attach(file.get(), points[i].get()))
      return fail_errno(ErrorKind::environment,
                        fmt::format("cannot keep {} as it is", (folder() / outside_[i].name).string()), errno);
  }
  return {};
}

Result<void> Disk::sync() const {
  if (!top_ || ::syncfs(top_->fd()) == 0) return {};
  return fail_errno(ErrorKind::environment, fmt::format("cannot sync the file system at {}", folder().string()), errno);
}

Result<PowerLoss> Disk::lose(const Torn& torn) {
  ROSE_ASSERT(top_.has_value());
  auto before = files_of(*top_);
  const std::string name = fmt::format("{}.whole", id_);
  struct Remove {
    const OpenFolder& own;
    const std::string& name;
    ~Remove() { (void)own.remove(name); }
  } const remove{own_, name};
  std::optional<OpenFolder> whole;
  std::map<std::string, TornFile> sources;
  if (torn.share > 0) {
    ROSE_CHECK(own_.remove(name));
    ROSE_TRY(whole, own_.make(name, {}, 0700));
    ROSE_CHECK(top_->copy_into(*whole, [&](const fs::path& inside, int fd) {
      if (const auto source = torn_file_of(fd)) sources.emplace(inside.string(), *source);
    }));
  }
  // If somebody has unmounted the file system, no power loss is simulated. dissolve_volumes() rescues its files later.
  if (!volume::is_mounted(*top_))
    return fail(ErrorKind::environment,
                fmt::format("somebody has unmounted the disk at {}", printable(folder().string())));
  std::uint32_t how = kNoFlush;
  if (::ioctl(top_->fd(), kShutdown, &how) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot shut the file system at {} down", folder().string()),
                      errno);
  if (auto detached = volume::detach(top_->fd()); !detached && volume::is_mounted(*top_))
    return Unexpected(detached.error());
  top_.reset();
  // Mount the image on another loop device, because the kernel considers the old device in use as long as a process has
  // one of its files open.
  PowerLoss loss;
  ROSE_CHECK(mount([&](const OpenFolder& top) -> Result<void> {
    for (const auto& [file, state] : before) {
      if (const auto source = sources.find(file);
          source != sources.end() && tear(whole->file_to_change(file), source->second, top.file_to_change(file), torn))
        ++loss.torn;
      const Fd found = top.at(file);
      struct stat info{};
      if (!found || ::fstat(found.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        ++loss.gone;
        loss.bytes += state.size;
      } else if (static_cast<std::uint64_t>(info.st_size) < state.size) {
        ++loss.shorter;
        loss.bytes += state.size - static_cast<std::uint64_t>(info.st_size);
      } else if (info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec != state.written_ns) {
        ++loss.older;
      }
    }
    return {};
  }));
  return loss;
}

}  // namespace rose::deploy
