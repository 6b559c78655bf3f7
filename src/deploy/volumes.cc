#include "deploy/volumes.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "base/log.h"
#include "base/text.h"

namespace rose::deploy {
namespace {

namespace fs = std::filesystem;

// attempts; a writer may use more room between reading the used size and setting the limit
constexpr int kFillRounds = 1000;
// attempts; another process may rename a folder on the path of a mount while the mount is searched for
constexpr int kFindRounds = 50;
constexpr std::size_t kPathPart = 2048;  // bytes: the kernel accepts no path longer than 4096 at once
constexpr const char* kMark = "trusted.rose";

Unexpected cannot(std::string_view what) {
  return fail_errno(ErrorKind::environment, std::string("cannot ") + std::string(what), errno);
}

// Decodes paths as the kernel writes them in mountinfo: "\040" is a space.
std::string unescaped(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
      path += static_cast<char>(code);
      i += 3;
    } else {
      path += text[i];
    }
  }
  return path;
}

struct Line {
  std::uint64_t number = 0, parent = 0;
  std::string point, type, source;
};

std::uint64_t number_of(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::map<std::uint64_t, Line> mounts() {
  std::map<std::uint64_t, Line> all;
  std::ifstream file("/proc/self/mountinfo");
  std::string text;
  while (std::getline(file, text)) {
    const auto type = text.find(" - ");
    if (type == std::string::npos) continue;
    const auto before = split(std::string_view(text).substr(0, type), ' ');
    const auto after = split(std::string_view(text).substr(type + 3), ' ');
    if (before.size() < 5 || after.size() < 2) continue;
    Line line{number_of(before[0]), number_of(before[1]), unescaped(before[4]), after[0], unescaped(after[1])};
    all[line.number] = std::move(line);
  }
  return all;
}

bool is_disk_of(const std::string& device, const std::string& id);
bool is_of(const Line& line, const std::string& id) {
  return (line.type == "tmpfs" && line.source == id) || (line.type == "ext4" && is_disk_of(line.source, id));
}

// True if `device` is the loop device of a Disk (deploy/disk.h) of this deployment. Disk stores the deployment's id in
// the device in place of a file name.
bool is_disk_of(const std::string& device, const std::string& id) {
  if (!device.starts_with("/dev/loop")) return false;
  const Fd loop(::open(device.c_str(), O_RDONLY | O_CLOEXEC));
  loop_info64 info{};
  return loop && ::ioctl(loop.get(), LOOP_GET_STATUS64, &info) == 0 &&
         reinterpret_cast<const char*>(info.lo_file_name) == id.substr(0, LO_NAME_SIZE - 1);
}

std::optional<std::uint64_t> mount_number(int fd) {
  struct statx info{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &info) != 0 || (info.stx_mask & STATX_MNT_ID) == 0)
    return std::nullopt;
  return info.stx_mnt_id;
}

Fd open_without_links(int folder, const std::string& path, int flags, std::uint64_t how_far) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | how_far;
  return Fd(static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
}

// Opens an absolute path of any length without following links. A user who may rename folders can make a path longer
// than the kernel accepts.
Fd open_folder(const std::string& path) {
  Fd at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t begin = 1; at && begin < path.size();) {
    std::size_t end = path.size();
    if (end - begin > kPathPart) end = path.rfind('/', begin + kPathPart);
    if (end == std::string::npos || end <= begin) return {};
    at = open_without_links(at.get(), path.substr(begin, end - begin), O_PATH | O_DIRECTORY, 0);
    begin = end + 1;
  }
  return at ? Fd(::open(own_path(at.get()).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) : Fd();
}

// The root of the mount with the number `mounted.number`, and the mount's name in the folder above. The path that the
// kernel reports may lead elsewhere by the time it is opened, so the number of the opened mount is compared. By then
// the number itself may have been reused, if the node's user has unmounted this mount. An open mount keeps its number,
// so the list of mounts that is read afterwards shows whether the number still belongs to this deployment.
struct Root {
  Fd fd;
  std::string name;
};
Result<std::optional<Root>> root_of(const volume::Mounted& mounted) {
  fs::path point;
  for (int round = 0; round < kFindRounds; ++round) {
    const auto all = mounts();
    const auto line = all.find(mounted.number);
    if (line == all.end() || !is_of(line->second, mounted.id)) return std::nullopt;
    point = line->second.point;
    Fd fd = open_folder(point.string());
    if (!fd || mount_number(fd.get()) != mounted.number) continue;
    const auto now = mounts();
    const auto still = now.find(mounted.number);
    if (still == now.end() || !is_of(still->second, mounted.id)) return std::nullopt;
    return Root{std::move(fd), point.filename().string()};
  }
  return fail(ErrorKind::environment, fmt::format("cannot reach the file system at {}", point.string()),
              "something is mounted over it, or a folder on its path is renamed repeatedly");
}

// The folder that a mount hides. It is reached through a copy of the tree above it that leaves out the mounts. In this
// mount namespace nobody can rename or remove the folder meanwhile. In another namespace, without the mount, the node's
// user can; is_marked() detects that.
Result<OpenFolder> folder_below(const Root& root, const fs::path& point) {
  const Fd above = open_without_links(root.fd.get(), "..", O_PATH | O_DIRECTORY, 0);
  if (!above) return cannot(fmt::format("open the folder above {}", point.string()));
  const Fd plain(::open_tree(above.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!plain) return cannot(fmt::format("look below the file system at {}", point.string()));
  ROSE_TRY(const OpenFolder parent,
           OpenFolder(Fd(::fcntl(plain.get(), F_DUPFD_CLOEXEC, 0)), point.parent_path()).enter({}));
  return parent.enter(root.name);
}

bool is_marked(const OpenFolder& folder, const std::string& id) {
  char value[256];
  const ssize_t size = ::getxattr(own_path(folder.fd()).c_str(), kMark, value, sizeof value);
  return size > 0 && std::string_view(value, static_cast<std::size_t>(size)) == id;
}

}  // namespace

Result<void> volume::mark(const OpenFolder& folder, const std::string& id) {
  if (::setxattr(own_path(folder.fd()).c_str(), kMark, id.data(), id.size(), 0) == 0) return {};
  const int error = errno;
  ROSE_TRY(const struct stat status, folder.status());
  if (status.st_uid == ::geteuid()) return {};  // the mark matters only for folders of other users
  return fail(
      ErrorKind::environment,
      fmt::format("cannot mark {} as rose's: {}", printable(folder.path().string()), std::strerror(error)),
      "nodes of other users need run folders on a file system with trusted attributes (ext4, xfs, btrfs, tmpfs): "
      "set TMPDIR or --report");
}

Result<Fd> volume::make_detached(const std::string& type, const std::string& source, const std::string& options) {
  const Fd context(::fsopen(type.c_str(), FSOPEN_CLOEXEC));
  if (!context) return cannot(fmt::format("use the file system {}", type));
  const auto set = [&](const std::string& key, const std::string* value) {
    return ::fsconfig(context.get(), value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, key.c_str(),
                      value == nullptr ? nullptr : value->c_str(), 0) == 0;
  };
  if (!set("source", &source)) return cannot(fmt::format("make a file system {} of {}", type, source));
  for (const std::string& option : split(options, ',')) {
    if (option.empty()) continue;
    const std::size_t at = option.find('=');
    const std::string value = at == std::string::npos ? "" : option.substr(at + 1);
    if (!set(option.substr(0, at), at == std::string::npos ? nullptr : &value))
      return cannot(fmt::format("make a file system {} with {}", type, option));
  }
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return cannot(fmt::format("make a file system {} of {} with {}", type, source, options));
  Fd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  if (!mount) return cannot(fmt::format("mount a file system {} of {}", type, source));
  return mount;
}

Result<void> volume::attach(int mount, int at) {
  if (::move_mount(mount, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0) return {};
  return cannot("mount a file system at its place");
}

Result<void> volume::detach(int mount) {
  if (::umount2(own_path(mount).c_str(), MNT_DETACH) == 0) return {};
  return cannot("unmount a file system");
}

Result<Volume> Volume::make(const OpenFolder& at, const std::string& id, const std::string& options) {
  ROSE_TRY(const struct stat was, at.status());
  const std::string all = fmt::format("mode={:o},uid={},gid={}{}{}", was.st_mode & 07777, was.st_uid, was.st_gid,
                                      options.empty() ? "" : ",", options);
  Volume made;
  made.folder_ = at.path();
  const auto in = [&](Error error) { return std::move(error).in(fmt::format("a tmpfs at {}", at.path().string())); };
  ROSE_TRY(made.mount_, volume::make_detached("tmpfs", id, all).map_error(in));
  ROSE_CHECK(volume::mark(at, id));
  ROSE_CHECK(volume::attach(made.mount_.get(), at.fd()).map_error(in));
  return made;
}

std::vector<Volume> Volume::others_in() const {
  std::vector<Volume> found;
  const auto all = mounts();
  const auto number = mount_number(mount_.get());
  const auto own = number ? all.find(*number) : all.end();
  if (own == all.end()) return found;
  for (const auto& [other, line] : all) {
    if (line.type != "tmpfs" || line.source == own->second.source) continue;
    if (line.point != own->second.point && !line.point.starts_with(own->second.point + "/")) continue;
    // Of several mounts on one folder, only the last one can be reached.
    Fd fd = open_folder(line.point);
    if (!fd || mount_number(fd.get()) != other) continue;
    Volume volume;
    volume.folder_ = line.point;
    volume.mount_ = std::move(fd);
    found.push_back(std::move(volume));
  }
  return found;
}

OpenFolder Volume::release() {
  Fd top(::openat(mount_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  mount_.reset();
  return {std::move(top), folder_};
}

Result<Volume::Room> Volume::room() const {
  struct statfs status{};
  if (::fstatfs(mount_.get(), &status) != 0)
    return cannot(fmt::format("look at the file system at {}", folder_.string()));
  const auto block = static_cast<std::uint64_t>(status.f_bsize);
  return Room{status.f_blocks * block, (status.f_blocks - status.f_bfree) * block};
}

Result<dev_t> Volume::device() const {
  struct stat status{};
  if (::fstat(mount_.get(), &status) != 0)
    return cannot(fmt::format("look at the file system at {}", folder_.string()));
  return status.st_dev;
}

// Returns 0 or errno. EINVAL means that the file system contains more than `bytes`.
static int set_size(int mount, std::uint64_t bytes) {
  const Fd context(::fspick(mount, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH));
  if (!context) return errno;
  if (::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", std::to_string(bytes).c_str(), 0) != 0 ||
      ::fsconfig(context.get(), FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0) != 0)
    return errno;
  return 0;
}

static Unexpected not_sized(const fs::path& folder, int error) {
  return fail_errno(ErrorKind::environment,
                    fmt::format("cannot change the size of the file system at {}", folder.string()), error);
}

Result<Volume::Room> Volume::fill() const {
  for (int round = 0; round < kFillRounds; ++round) {
    ROSE_TRY(const Room now, room());
    // Size 0 would mean unlimited.
    const std::uint64_t bytes = std::max<std::uint64_t>(now.used, static_cast<std::uint64_t>(::getpagesize()));
    const int error = set_size(mount_.get(), bytes);
    if (error == EINVAL) continue;
    if (error != 0) return not_sized(folder_, error);
    ROSE_TRY(const Room after, room());
    if (after.bytes == bytes) return after;
  }
  return fail(ErrorKind::inconclusive,
              fmt::format("the file system at {} does not get full: its files change too fast", folder_.string()));
}

Result<void> Volume::resize(std::uint64_t bytes) const {
  if (const int error = set_size(mount_.get(), bytes); error != 0) return not_sized(folder_, error);
  ROSE_TRY(const Room now, room());
  if (now.bytes < bytes)
    return fail(ErrorKind::environment,
                fmt::format("the file system at {} has {} bytes instead of {}", folder_.string(), now.bytes, bytes));
  return {};
}

Result<fs::path> volume::mount_point(const fs::path& path) {
  const Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  const auto number = fd ? mount_number(fd.get()) : std::nullopt;
  if (!number) return cannot(fmt::format("find the mount that holds {}", path.string()));
  const auto all = mounts();
  const auto line = all.find(*number);
  if (line == all.end())
    return fail(ErrorKind::environment, fmt::format("the mount that holds {} cannot be found", path.string()));
  return fs::path(line->second.point);
}

std::vector<volume::Mounted> volume::of(const std::string& id) {
  const auto all = mounts();
  const auto depth = [&](const Line& line) {
    int above = 0;
    for (auto at = all.find(line.parent); at != all.end() && above < 1000; at = all.find(at->second.parent)) {
      ++above;
      if (at->second.parent == at->first) break;
    }
    return above;
  };
  std::vector<std::pair<int, Mounted>> found;
  for (const auto& [number, line] : all)
    if (is_of(line, id)) found.emplace_back(depth(line), Mounted{number, line.point, id});
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Mounted> mounted;
  for (auto& one : found) mounted.push_back(std::move(one.second));
  return mounted;
}

Result<volume::Dissolved> volume::dissolve(const Mounted& mounted) {
  ROSE_TRY(std::optional<Root> root, root_of(mounted));
  if (!root) return Dissolved::gone;
  ROSE_TRY(const OpenFolder below, folder_below(*root, mounted.point));
  const OpenFolder files(std::move(root->fd), mounted.point);
  ROSE_TRY(const struct stat top, files.status());
  if (top.st_uid != ::geteuid() && !is_marked(below, mounted.id)) {
    ROSE_CHECK(detach(files.fd()));
    return Dissolved::exchanged;
  }
  // Files that are kept outside a disk (deploy/disk.h) are mounted on files in the folder below, so these names are
  // kept. Apart from them, that folder was empty. Entries of other users were put there meanwhile and are kept, too.
  const auto only = top.st_uid != ::geteuid() ? std::optional(top.st_uid) : std::nullopt;
  Result<void> copied = below.clear([&](const std::string& name) { return files.is_mounted_on(name); }, only);
  // Continue after an error, because partial copies are better than none.
  if (auto done = files.copy_into(below); !done && copied) copied = std::move(done);
  if (auto given = below.give({top.st_uid, top.st_gid}, top.st_mode & 07777); !given && copied)
    copied = std::move(given);
  ROSE_CHECK(detach(files.fd()));
  (void)::removexattr(own_path(below.fd()).c_str(), kMark);
  ROSE_CHECK(copied);
  return Dissolved::put_back;
}

Result<fs::path> volume::rescue(const OpenFolder& top, const fs::path& into) {
  if (!OpenFolder::open(into)) ROSE_CHECK(make_own_folder(into, 0700));
  ROSE_TRY(const OpenFolder all, OpenFolder::open(into));
  std::string name;
  for (int number = 0; name.empty() || all.at(name); ++number) name = std::to_string(number);
  ROSE_TRY(const OpenFolder to, all.make(name, {}, 0700));
  const Result<void> copied = top.copy_into(to);
  (void)::umount2(own_path(top.fd()).c_str(), MNT_DETACH);  // an error means that somebody has already done it
  ROSE_CHECK(copied);
  return to.path();
}

bool volume::is_mounted(const OpenFolder& top) {
  const auto number = mount_number(top.fd());
  return number && mounts().contains(*number);
}

std::optional<std::uint64_t> volume::number(const OpenFolder& folder) { return mount_number(folder.fd()); }

}  // namespace rose::deploy
