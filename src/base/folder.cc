#include "base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "base/read_all.h"
#include "base/text.h"

namespace rose {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
constexpr std::uint64_t kNoLinks = kInside | RESOLVE_NO_SYMLINKS;
constexpr std::uint64_t kSameMount = kNoLinks | RESOLVE_NO_XDEV;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostLinks = 16;  // links that are followed in a path; the kernel has the same kind of limit (40)
// The most levels of folders that are open at once: the number of open files per process is limited, but users may nest
// folders without limit.
constexpr int kDeepest = 64;
// a limit in case another process keeps adding entries to a folder that is being emptied
constexpr int kMostRounds = 64;
constexpr unsigned kMostMoved = 10'000;

Fd open_at(int folder, const std::string& name, int flags, std::uint64_t resolve, mode_t mode = 0) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  // EAGAIN: something was renamed meanwhile, so the kernel could not determine whether the path stays inside.
  for (int i = 0; i < 1000; ++i) {
    const long fd = ::syscall(SYS_openat2, folder, name.empty() ? "." : name.c_str(), &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) return Fd(static_cast<int>(fd));
  }
  return {};
}

// Opens the file that was examined: through its descriptor, because its name may now belong to another file.
Fd reopen(const Fd& found, int flags) { return Fd(::open(own_path(found.get()).c_str(), flags | O_CLOEXEC)); }

Fd refused(int error) {
  errno = error;
  return {};
}

// True if only this user can add entries to the folder or replace them.
bool is_private(const struct stat& folder) { return folder.st_uid == ::geteuid() && (folder.st_mode & 0022) == 0; }
bool is_private(int folder) {
  struct stat status{};
  return ::fstat(folder, &status) == 0 && is_private(status);
}

// True if `file` has several hard links and belongs to a user other than the owner of the folder. A user who may write
// to a folder may create a link there to a file that this user may not read.
bool is_borrowed(const struct stat& file, const struct stat& folder) {
  return file.st_nlink > 1 && file.st_uid != folder.st_uid && !is_private(folder);
}

Unexpected cannot(std::string_view what, const fs::path& path) {
  const int error = errno;
  return fail_errno(ErrorKind::environment, fmt::format("cannot {} {}", what, printable(path.string())), error);
}

// The clock from which the kernel takes the times of files.
timespec file_time() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}

bool earlier(const statx_timestamp& a, const timespec& b) {
  return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && static_cast<long>(a.tv_nsec) < b.tv_nsec);
}

// True if `folder` is the folder that was just created. A folder cannot be created and opened in one step, so it is
// opened by its name. If other users may write to the parent, they may meanwhile have moved an older folder of this
// user to that name, and rose would make another user the owner of the older folder. A folder that was just created has
// no times before `since` (file_time() before its creation), and only its owner can set these times.
bool was_just_made(int folder, const timespec& since) {
  const timespec now = file_time();
  struct statx status{};
  if (::statx(folder, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &status) != 0) return false;
  if (status.stx_uid != ::geteuid() || earlier(status.stx_mtime, since)) return false;
  if (status.stx_mtime.tv_sec > now.tv_sec + 1) return false;  // somebody set the time to the future
  if ((status.stx_mask & STATX_BTIME) != 0 && earlier(status.stx_btime, since)) return false;
  return (status.stx_mode & 0777) == 0700 && status.stx_nlink <= 2;
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

std::vector<std::string> names_of(int folder) {
  std::vector<std::string> names;
  const int again = ::openat(folder, ".", kFolder);
  const std::unique_ptr<DIR, CloseDir> dir(again >= 0 ? ::fdopendir(again) : nullptr);
  if (!dir) {
    if (again >= 0) ::close(again);
    return names;
  }
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

bool is_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

std::optional<statx_timestamp> born(int fd) {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0 || (status.stx_mask & STATX_BTIME) == 0)
    return std::nullopt;
  return status.stx_btime;
}

// Removes a tree. A folder that is nested deeper than kDeepest levels is first moved up to the top folder, because no
// more levels may be open at once.
class Remover {
 public:
  // `since`: a folder of this user that was created before this time and lies in a folder of another user is kept,
  // because the other user may have moved it there to make rose remove it.
  explicit Remover(int top, const std::optional<uid_t>& only = std::nullopt,
                   const std::optional<statx_timestamp>& since = std::nullopt)
      : top_(top), only_(only), since_(since) {}

  [[nodiscard]] bool met_older() const { return met_older_; }

  // Returns 0 or errno.
  int remove(int folder, const std::string& name, int depth) {
    if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    const int cannot_unlink = errno;
    if (depth >= kDeepest) {
      if (const Fd deep = open_at(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, kSameMount);
          deep && is_older(folder, deep.get(), name))
        return EPERM;
      const std::string moved = fmt::format("{}{}", kMoved, ++moved_);
      return ::renameat(folder, name.c_str(), top_, moved.c_str()) == 0 ? 0 : errno;
    }
    {
      const Fd inner = open_at(folder, name, kFolder, kSameMount);
      if (!inner) return errno == ENOTDIR || errno == ELOOP ? cannot_unlink : errno;
      struct stat status{};
      if (only_ && (::fstat(inner.get(), &status) != 0 || status.st_uid != *only_)) return EPERM;
      if (is_older(folder, inner.get(), name)) return EPERM;
      if (const int error = clear(inner.get(), depth + 1, {}); error != 0) return error;
    }
    if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
    return errno;
  }

  int clear(int folder, int depth, const std::function<bool(const std::string&)>& keep) {
    int error = 0;
    for (bool again = false;; again = true) {
      std::vector<std::string> names = names_of(folder);
      if (keep) std::erase_if(names, keep);
      if (names.empty()) return 0;
      // Repeat only if another process added entries meanwhile (ENOTEMPTY). Other errors persist however often the
      // removal is repeated, and repeating it at each level of a tree would take exponentially long.
      if (again && ((error != 0 && error != ENOTEMPTY) || ++rounds_ > kMostRounds))
        return error != 0 ? error : ENOTEMPTY;
      const unsigned before = moved_;
      error = 0;
      for (const std::string& name : names)
        if (const int one = remove(folder, name, depth); one != 0 && (error == 0 || error == ENOTEMPTY)) error = one;
      // Folders that were moved up are now entries of the top folder, so it must be emptied again.
      if (folder == top_ && moved_ != before && moved_ < kMostMoved) rounds_ = 0, error = 0;
    }
  }

 private:
  static constexpr std::string_view kMoved = ".rose-removed-";

  bool is_older(int folder, int inner, const std::string& name) {
    struct stat above{}, status{};
    if (!since_ || ::fstat(folder, &above) != 0 || ::fstat(inner, &status) != 0) return false;
    if (status.st_uid != ::geteuid()) return false;
    if (above.st_uid == status.st_uid && !(folder == top_ && name.starts_with(kMoved))) return false;
    const auto made = born(inner);
    const bool older = made && earlier(*made, {since_->tv_sec, static_cast<long>(since_->tv_nsec)});
    met_older_ = met_older_ || older;
    return older;
  }

  const int top_;
  const std::optional<uid_t> only_;
  const std::optional<statx_timestamp> since_;
  bool met_older_ = false;
  unsigned moved_ = 0;
  int rounds_ = 0;  // rounds of all levels together
};

// --- Copying ---

bool is_copied_attribute(std::string_view name) {
  return name.starts_with("user.") || name == "system.posix_acl_access" || name == "system.posix_acl_default";
}

void copy_attributes(int from, int to) {
  char list[65536];
  const ssize_t size = ::flistxattr(from, list, sizeof list);
  for (ssize_t at = 0; at < size;) {
    const char* const name = list + at;
    at += static_cast<ssize_t>(std::strlen(name)) + 1;
    if (!is_copied_attribute(name)) continue;
    std::vector<char> value(65536);
    const ssize_t got = ::fgetxattr(from, name, value.data(), value.size());
    if (got >= 0) (void)::fsetxattr(to, name, value.data(), static_cast<std::size_t>(got), 0);
  }
}

// A new file inherits the default access list of its folder. Another user may have set that list meanwhile, and
// setting the file's mode later would put the entries of that list into effect.
void drop_access_lists(int fd) {
  (void)::fremovexattr(fd, "system.posix_acl_access");
  (void)::fremovexattr(fd, "system.posix_acl_default");
}

// Returns 0 or errno.
int copy_bytes(int from, int to, off_t size) {
  std::vector<char> buffer(std::size_t{1} << 18);
  off_t at = 0;
  while (at < size) {
    off_t begin = ::lseek(from, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;  // a hole up to the end
    off_t end = size;
    if (begin < 0) {
      begin = at;  // the file system does not support SEEK_DATA
    } else if (const off_t hole = ::lseek(from, begin, SEEK_HOLE); hole >= 0) {
      end = std::min(hole, size);
    }
    for (at = begin; at < end;) {
      const ssize_t n = ::pread(from, buffer.data(), std::min(buffer.size(), static_cast<std::size_t>(end - at)), at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno;
      if (n == 0) {
        size = at;  // the file became shorter
        break;
      }
      for (ssize_t done = 0; done < n;) {
        const ssize_t put = ::pwrite(to, buffer.data() + done, static_cast<std::size_t>(n - done), at + done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : EIO;
        done += put;
      }
      at += n;
    }
  }
  return ::ftruncate(to, size) == 0 ? 0 : errno;
}

void copy_times(int to, const struct stat& status) {
  const timespec times[2] = {status.st_atim, status.st_mtim};
  (void)::futimens(to, times);
}

// While an object of this class exists, files that this thread creates belong to the given user and group, and creating
// them needs the permissions of that user.
class AsOwner {
 public:
  AsOwner(uid_t uid, gid_t gid) {
    ::syscall(SYS_setfsgid, gid);
    // changing this id from 0 drops the capabilities over files, changing it back to 0 restores them
    ::syscall(SYS_setfsuid, uid);
  }
  AsOwner(const AsOwner&) = delete;
  AsOwner& operator=(const AsOwner&) = delete;
  ~AsOwner() {
    ::syscall(SYS_setfsuid, ::geteuid());
    ::syscall(SYS_setfsgid, ::getegid());
  }
};

// Like AsOwner, but the thread also gives up root's groups, which could let it read more than the user may read.
class AsReader {
 public:
  explicit AsReader(const Owner& owner)
      : count_(std::max(::getgroups(static_cast<int>(groups_.size()), groups_.data()), 0)), as_(dropped(owner)) {}
  AsReader(const AsReader&) = delete;
  AsReader& operator=(const AsReader&) = delete;
  // Uses system calls, because the functions of the C library would change the groups of all threads.
  ~AsReader() { ::syscall(SYS_setgroups, count_, groups_.data()); }

 private:
  static AsOwner dropped(const Owner& owner) {
    ::syscall(SYS_setgroups, 0, nullptr);
    return {owner.uid, owner.gid};
  }
  std::vector<gid_t> groups_ = std::vector<gid_t>(NGROUPS_MAX);
  int count_;
  AsOwner as_;
};

// Of the folders on the path to an entry, the first one that belongs to a user other than root, and the rest of the
// path from that folder on.
struct Theirs {
  Fd folder;
  Owner owner;
  fs::path inside;
};
std::optional<Theirs> first_of_another(int top, const fs::path& wanted) {
  if (::geteuid() != 0) return std::nullopt;
  Theirs at{Fd(::fcntl(top, F_DUPFD_CLOEXEC, 0)), {}, wanted};
  for (;;) {
    struct stat status{};
    if (!at.folder || ::fstat(at.folder.get(), &status) != 0) return std::nullopt;
    at.owner = {status.st_uid, status.st_gid};
    if (status.st_uid != 0) return at;
    const auto first = at.inside.begin();
    if (first == at.inside.end() || std::next(first) == at.inside.end()) return std::nullopt;
    Fd next = open_at(at.folder.get(), first->string(), O_PATH | O_DIRECTORY | O_NOFOLLOW, kInside);
    fs::path rest;
    for (auto part = std::next(first); part != at.inside.end(); ++part) rest /= *part;
    at.folder = std::move(next);
    at.inside = std::move(rest);
  }
}

// Opens `found` for reading. If a folder on the path belongs to another user, that user may have moved one of root's
// folders into it, with files that only root may read. Therefore the file is opened with that user's rights.
Fd reopen_to_read(int top, const fs::path& wanted, const Fd& found, const struct stat& status) {
  constexpr int kHow = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  const auto theirs = first_of_another(top, wanted);
  if (!theirs) return reopen(found, kHow);
  const AsReader as(theirs->owner);
  const Fd again = open_at(theirs->folder.get(), theirs->inside.string(), O_PATH | O_NOFOLLOW, kInside);
  struct stat now{};
  if (!again) return {};
  if (::fstat(again.get(), &now) != 0 || now.st_dev != status.st_dev || now.st_ino != status.st_ino)
    return refused(EAGAIN);
  return reopen(again, kHow);
}

// Copies the content of a folder. Source and target are accessed only through descriptors, so that no entry outside of
// them is read or changed, even if their users replace entries meanwhile.
class Copier {
 public:
  Copier(const OpenFolder& from, const OpenFolder& to, const OpenFolder::Copied& on_copied)
      : from_(from), to_(to), on_copied_(on_copied) {}

  Result<void> run() {
    folder(from_.fd(), to_.fd(), {}, 0);
    if (error_ == 0) return {};
    return fail_errno(ErrorKind::environment,
                      fmt::format("cannot copy {}", printable((from_.path() / where_).string())), error_);
  }

 private:
  void failed(const fs::path& inside, int error) {
    if (error_ != 0) return;
    error_ = error;
    where_ = inside;
  }

  void folder(int from, int to, const fs::path& inside, int depth) {
    for (const std::string& name : names_of(from)) {
      const fs::path path = inside / name;
      if (const int error = entry(from, to, name, path, depth); error != 0) failed(path, error);
    }
  }

  int entry(int from, int to, const std::string& name, const fs::path& path, int depth) {
    const Fd found = open_at(from, name, O_PATH | O_NOFOLLOW, kInside | RESOLVE_NO_XDEV);
    struct stat status{};
    if (!found) return errno == ENOENT || errno == EXDEV ? 0 : errno;  // removed meanwhile, or another file system
    if (::fstat(found.get(), &status) != 0) return errno;
    made_inode_ = 0;
    const bool linked = !S_ISDIR(status.st_mode) && status.st_nlink > 1;
    if (linked && link_again(status, to, name)) return 0;
    int error = 0;
    if (S_ISDIR(status.st_mode)) error = inner_folder(found, status, to, name, path, depth);
    else if (S_ISREG(status.st_mode)) error = regular(found, status, to, name, path);
    else error = special(found, status, to, name);
    if (error == 0 && linked && made_inode_ != 0)
      copied_.try_emplace({status.st_dev, status.st_ino}, Copied{path.string(), made_inode_});
    return error;
  }

  int inner_folder(const Fd& found, const struct stat& status, int to, const std::string& name, const fs::path& path,
                   int depth) {
    if (depth >= kDeepest) return ENAMETOOLONG;
    const Fd from = reopen(found, O_RDONLY | O_DIRECTORY);
    if (!from) return errno;
    const timespec since = file_time();
    if (::mkdirat(to, name.c_str(), 0700) != 0) return errno;
    const Fd made = open_at(to, name, kFolder, kSameMount);
    if (!made) return errno;
    if (!is_private(to) && !was_just_made(made.get(), since)) return EPERM;  // replaced meanwhile
    drop_access_lists(made.get());
    folder(from.get(), made.get(), path, depth + 1);
    if (::fchown(made.get(), status.st_uid, status.st_gid) != 0 || ::fchmod(made.get(), status.st_mode & 07777) != 0)
      return errno;
    copy_attributes(from.get(), made.get());
    copy_times(made.get(), status);
    return 0;
  }

  int regular(const Fd& found, const struct stat& status, int to, const std::string& name, const fs::path& path) {
    const Fd from = reopen(found, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!from) return errno;
    const Fd made = open_at(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kSameMount, 0600);
    if (!made) return errno;
    note_made(made);
    drop_access_lists(made.get());
    int error = copy_bytes(from.get(), made.get(), status.st_size);
    if (::fchown(made.get(), status.st_uid, status.st_gid) != 0 || ::fchmod(made.get(), status.st_mode & 07777) != 0)
      error = error != 0 ? error : errno;
    copy_attributes(from.get(), made.get());
    copy_times(made.get(), status);
    if (error == 0 && on_copied_) on_copied_(path, from.get());
    return error;
  }

  // Copies symbolic links, pipes, sockets and devices (which only root can have created). In a folder to which others
  // may write, they are created with the rights of their owner, because chown by name could change another file.
  // Devices are not created there.
  int special(const Fd& found, const struct stat& status, int to, const std::string& name) {
    const bool link = S_ISLNK(status.st_mode);
    const bool by_owner = !is_private(to);
    if (by_owner && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))) return EPERM;
    char target[4096] = {};
    if (link && ::readlinkat(found.get(), "", target, sizeof target - 1) < 0) return errno;
    int error = 0;
    {
      const AsOwner owner(by_owner ? status.st_uid : ::geteuid(), by_owner ? status.st_gid : ::getegid());
      const int made = link ? ::symlinkat(target, to, name.c_str())
                            : ::mknodat(to, name.c_str(), status.st_mode & (S_IFMT | 0777), status.st_rdev);
      if (made != 0) error = errno;
    }
    if (error != 0 || by_owner) return error;
    const Fd made = open_at(to, name, O_PATH | O_NOFOLLOW, kInside | RESOLVE_NO_XDEV);
    if (!made || ::fchownat(made.get(), "", status.st_uid, status.st_gid, AT_EMPTY_PATH) != 0) return errno;
    note_made(made);
    if (!link && ::chmod(own_path(made.get()).c_str(), status.st_mode & 07777) != 0) return errno;
    return 0;
  }

  // If the file was already copied under another name, links that copy. Returns false if it was not.
  bool link_again(const struct stat& status, int to, const std::string& name) {
    const auto known = copied_.find({status.st_dev, status.st_ino});
    if (known == copied_.end()) return false;
    const Fd first = open_at(to_.fd(), known->second.path, O_PATH | O_NOFOLLOW, kInside | RESOLVE_NO_XDEV);
    struct stat now{};
    if (!first || ::fstat(first.get(), &now) != 0 || now.st_ino != known->second.inode) return false;
    return ::linkat(AT_FDCWD, own_path(first.get()).c_str(), to, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }

  // Takes the inode number from the descriptor, because the name may already belong to another file.
  void note_made(const Fd& made) {
    struct stat status{};
    if (::fstat(made.get(), &status) == 0) made_inode_ = status.st_ino;
  }

  struct Copied {
    std::string path;
    ino_t inode;
  };
  const OpenFolder& from_;
  const OpenFolder& to_;
  const OpenFolder::Copied& on_copied_;
  std::map<std::pair<dev_t, ino_t>, Copied> copied_;
  ino_t made_inode_ = 0;  // of the file that was just copied; 0: unknown
  int error_ = 0;
  fs::path where_;
};

bool walk(const OpenFolder& folder, const fs::path& inside, int depth,
          const std::function<bool(const OpenFolder::Entry&)>& visit) {
  for (const std::string& name : folder.names()) {
    const Fd found = open_at(folder.fd(), name, O_PATH | O_NOFOLLOW, kInside | RESOLVE_NO_XDEV);
    OpenFolder::Entry entry{inside / name, folder, name, {}};
    if (!found || ::fstat(found.get(), &entry.status) != 0) continue;
    if (!visit(entry)) return false;
    if (!S_ISDIR(entry.status.st_mode) || depth >= kDeepest) continue;
    Fd inner = reopen(found, O_RDONLY | O_DIRECTORY);
    if (inner && !walk(OpenFolder(std::move(inner), folder.path() / name), entry.inside, depth + 1, visit))
      return false;
  }
  return true;
}

// The part of `file` below `folder`: `file` itself if it is relative; empty if it is not below `folder`.
fs::path part_below(const fs::path& folder, const fs::path& file) {
  if (file.is_relative()) return file;
  const fs::path below = file.lexically_relative(folder);
  return below.empty() || *below.begin() == ".." ? fs::path() : below;
}

bool may_write(const fs::path& path, const struct stat& folder, const UserGroups& user) {
  if (folder.st_uid == user.uid) return true;  // the owner may chmod the folder
  if ((folder.st_mode & S_IWOTH) != 0) return true;
  if ((folder.st_mode & S_IWGRP) == 0) return false;
  // If the folder has an access list, the group bits are the list's mask: the most that an entry for a group or a
  // further user permits. The entries themselves are not examined.
  return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0 ||
         std::find(user.groups.begin(), user.groups.end(), folder.st_gid) != user.groups.end();
}

}  // namespace

std::string own_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

Result<OpenFolder> OpenFolder::open(const fs::path& path) {
  Fd fd(::open(path.c_str(), kFolder));
  if (!fd && errno == EACCES) fd = Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return cannot("open the folder", path);
  return OpenFolder(std::move(fd), path);
}

Result<struct stat> OpenFolder::status() const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return cannot("look at", path_);
  return status;
}

Result<OpenFolder> OpenFolder::enter(const fs::path& inside) const {
  Fd fd = open_at(fd_.get(), inside.string(), kFolder, kNoLinks);
  if (!fd) return cannot("open the folder", path_ / inside);
  return OpenFolder(std::move(fd), inside.empty() ? path_ : path_ / inside);
}

Result<OpenFolder> OpenFolder::make(const fs::path& inside, const std::optional<Owner>& owner, mode_t mode) const {
  ROSE_TRY(OpenFolder at, enter({}));
  for (const fs::path& part : inside) {
    const std::string name = part.string();
    if (name.empty() || name == ".") continue;
    if (!is_name(name))
      return fail(ErrorKind::input, fmt::format("{} leads out of its folder", (path_ / inside).string()));
    const bool ours = is_private(at.fd());
    const timespec since = file_time();
    const bool made = ::mkdirat(at.fd(), name.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) return cannot("make", at.path() / part);
    ROSE_TRY(OpenFolder inner, at.enter(part));
    ROSE_TRY(const struct stat status, inner.status());
    const bool trusted = made ? ours || was_just_made(inner.fd(), since)
                              : status.st_uid == ::geteuid() || (owner && status.st_uid == owner->uid);
    if (!trusted)
      return fail(ErrorKind::environment,
                  made ? fmt::format("{} was exchanged while it was made", printable(inner.path().string()))
                       : fmt::format("{} belongs to user {}", printable(inner.path().string()), status.st_uid));
    if (made || ours)
      ROSE_CHECK(inner.give(owner.value_or(Owner{status.st_uid, status.st_gid}), made ? mode : status.st_mode & 07777));
    at = std::move(inner);
  }
  return at;
}

Result<void> OpenFolder::give(const Owner& owner, mode_t mode) const {
  if (::fchown(fd_.get(), owner.uid, owner.gid) != 0 || ::fchmod(fd_.get(), mode) != 0)
    return cannot("set the owner and mode of", path_);
  return {};
}

Fd OpenFolder::file(const fs::path& inside) const {
  fs::path wanted = inside;
  for (int links = 0; links < kMostLinks; ++links) {
    const Fd parent = open_at(fd_.get(), wanted.parent_path().string(), O_PATH | O_DIRECTORY, kInside);
    if (!parent) return {};
    const std::string name = wanted.filename().string();
    if (!is_name(name)) return refused(EINVAL);
    const Fd found = open_at(parent.get(), name, O_PATH | O_NOFOLLOW, kInside);
    struct stat status{}, folder{};
    if (!found || ::fstat(found.get(), &status) != 0 || ::fstat(parent.get(), &folder) != 0) return {};
    if (S_ISLNK(status.st_mode)) {
      char target[4096];
      const ssize_t size = ::readlinkat(found.get(), "", target, sizeof target);
      if (size <= 0) return {};
      const fs::path next(std::string(target, static_cast<std::size_t>(size)));
      if (next.is_absolute()) return refused(EXDEV);
      wanted = wanted.parent_path() / next;
      continue;
    }
    if (!S_ISREG(status.st_mode)) return refused(EINVAL);
    if (is_borrowed(status, folder)) return refused(EPERM);
    return reopen_to_read(fd_.get(), wanted, found, status);
  }
  return refused(ELOOP);
}

Fd OpenFolder::file_to_change(const fs::path& inside) const {
  const Fd parent = open_at(fd_.get(), inside.parent_path().string(), O_PATH | O_DIRECTORY, kNoLinks);
  if (!parent) return {};
  const Fd found = open_at(parent.get(), inside.filename().string(), O_PATH | O_NOFOLLOW, kInside);
  struct stat status{}, folder{};
  if (!found || ::fstat(found.get(), &status) != 0 || ::fstat(parent.get(), &folder) != 0) return {};
  if (!S_ISREG(status.st_mode)) return refused(EINVAL);
  if (is_borrowed(status, folder)) return refused(EPERM);
  return reopen(found, O_RDWR | O_NONBLOCK | O_NOCTTY);
}

namespace {

Result<std::string> content_of(const Fd& fd, const fs::path& path, std::size_t most) {
  if (!fd) return fail(ErrorKind::input, fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  return read_all(fd.get(), path, most);
}

}  // namespace

Result<std::string> OpenFolder::read(const fs::path& inside, std::size_t most) const {
  return content_of(file(inside), path_ / inside, most);
}

Result<Fd> OpenFolder::create(const std::string& name, const std::optional<Owner>& owner, mode_t mode) const {
  Fd fd = is_name(name) ? open_at(fd_.get(), name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, kSameMount, 0600)
                        : refused(EINVAL);
  if (!fd || (owner && ::fchown(fd.get(), owner->uid, owner->gid) != 0) || ::fchmod(fd.get(), mode) != 0)
    return cannot("make", path_ / name);
  return fd;
}

Fd OpenFolder::at(const fs::path& inside) const {
  return open_at(fd_.get(), inside.string(), O_PATH | O_NOFOLLOW, kNoLinks);
}

std::vector<std::string> OpenFolder::names() const { return names_of(fd_.get()); }

bool OpenFolder::is_mounted_on(const std::string& name) const {
  return !open_at(fd_.get(), name, O_PATH | O_NOFOLLOW, kInside | RESOLVE_NO_XDEV) && errno == EXDEV;
}

void OpenFolder::each(const std::function<bool(const Entry&)>& visit) const { (void)walk(*this, {}, 0, visit); }

Result<void> OpenFolder::remove(const std::string& name) const {
  if (!is_name(name)) return fail(ErrorKind::environment, fmt::format("'{}' is no name", name));
  {
    const Fd inner = open_at(fd_.get(), name, kFolder, kSameMount);
    if (inner) {
      Remover remover(inner.get(), std::nullopt, born(inner.get()));
      errno = remover.clear(inner.get(), 0, {});
      if (errno != 0 && remover.met_older())
        return fail(
            ErrorKind::environment,
            fmt::format("{} is left: a folder of root in it is older, so another user has moved that folder there",
                        printable((path_ / name).string())),
            "look at what it holds, and remove it yourself");
      if (errno != 0) return cannot("empty", path_ / name);
    }
  }
  if (errno = Remover(fd_.get()).remove(fd_.get(), name, 0); errno != 0) return cannot("remove", path_ / name);
  return {};
}

Result<void> OpenFolder::clear(const std::function<bool(const std::string&)>& keep,
                               const std::optional<uid_t>& only) const {
  if (errno = Remover(fd_.get(), only).clear(fd_.get(), 0, keep); errno != 0) return cannot("empty", path_);
  return {};
}

Result<void> OpenFolder::rename(const std::string& name, const OpenFolder& into, const std::string& to) const {
  if (!is_name(name) || !is_name(to) ||
      ::syscall(SYS_renameat2, fd_.get(), name.c_str(), into.fd(), to.c_str(), 1U /* RENAME_NOREPLACE */) != 0)
    return cannot("rename", path_ / name);
  return {};
}

Result<void> OpenFolder::copy_into(const OpenFolder& to, const Copied& copied) const {
  return Copier(*this, to, copied).run();
}

Fd open_inside(const fs::path& folder, const fs::path& file) {
  if (folder.empty()) return open_regular(file);
  const fs::path below = part_below(folder, file);
  if (below.empty()) return refused(EXDEV);
  const auto opened = OpenFolder::open(folder);
  return opened ? opened->file(below) : Fd();
}

Result<std::string> read_inside(const fs::path& folder, const fs::path& file, std::size_t most) {
  return content_of(open_inside(folder, file), file.is_absolute() ? file : folder / file, most);
}

std::optional<struct stat> status_inside(const fs::path& folder, const fs::path& file) {
  const Fd fd = open_inside(folder, file);
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return std::nullopt;
  return status;
}

void remove_tree(const fs::path& folder) {
  const fs::path name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  const fs::path above = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
  const auto parent = OpenFolder::open(above.empty() ? fs::path(".") : above);
  if (!parent) return;
  if (const auto removed = parent->remove(name.string()); !removed && !removed.error().hint.empty())
    log::warning("{}: {}", removed.error().message, removed.error().hint);
}

Result<void> make_own_folder(const fs::path& folder, mode_t mode) {
  // The umask may clear bits of the mode given to mkdir(), so the mode is set afterwards.
  if (::mkdir(folder.c_str(), 0700) != 0) return cannot("make", folder);
  const Fd made(::open(folder.c_str(), kFolder));
  struct stat status{};
  if (!made || ::fstat(made.get(), &status) != 0 || status.st_uid != ::geteuid() || ::fchmod(made.get(), mode) != 0)
    return cannot("make", folder);
  return {};
}

bool is_own_folder(const fs::path& folder) {
  struct stat info{};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && is_private(info);
}

namespace {

// The first folder on the path to `folder`, following all links, for which `replaceable` returns true. `replaceable` is
// called with the folder, the folder's status, and the status of the next component of the path. The search ends at the
// first component that does not exist; with `missing`, the folder that lacks it is returned.
using Replaceable = std::function<bool(const fs::path& at, const struct stat& above, const struct stat& entry)>;
std::optional<fs::path> first_on_the_way(const fs::path& folder, const Replaceable& replaceable, bool missing) {
  std::error_code error;
  fs::path at = "/";           // has no link and no ".." in it
  std::vector<fs::path> rest;  // components that remain to be resolved, the next one last
  const auto follow = [&rest](const fs::path& path) {
    std::vector<fs::path> parts(path.begin(), path.end());
    rest.insert(rest.end(), parts.rbegin(), parts.rend());
  };
  follow(fs::absolute(folder, error));
  for (int links = 0; !rest.empty();) {
    const fs::path part = std::move(rest.back());
    rest.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "/") {
      at = "/";
      continue;
    }
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path next = at / part;
    struct stat entry{}, above{};
    if (::stat(at.c_str(), &above) != 0) return at;
    if (::lstat(next.c_str(), &entry) != 0) {
      // This user will create the component, so its owner will be this user.
      if (errno == ENOENT && !missing) entry.st_uid = ::geteuid();
      else return at;
      return replaceable(at, above, entry) ? std::optional(at) : std::nullopt;
    }
    if (replaceable(at, above, entry)) return at;
    if (S_ISLNK(entry.st_mode)) {
      const fs::path target = fs::read_symlink(next, error);
      if (error || ++links > kMostLinks) return at;
      follow(target);
    } else {
      at = next;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> exchangeable_by(const UserGroups& user, const fs::path& folder) {
  if (user.uid == 0) return std::nullopt;
  const auto replaceable = [&user](const fs::path& at, const struct stat& above, const struct stat& entry) {
    if (!may_write(at, above, user)) return false;
    const bool sticky = (above.st_mode & S_ISVTX) != 0;
    return !sticky || above.st_uid == user.uid || entry.st_uid == user.uid;
  };
  return first_on_the_way(folder, replaceable, true);
}

std::optional<fs::path> exchangeable_by_others(const std::vector<uid_t>& trusted, const fs::path& folder) {
  const auto is_trusted = [&trusted](uid_t uid) {
    return std::find(trusted.begin(), trusted.end(), uid) != trusted.end();
  };
  const auto replaceable = [&](const fs::path&, const struct stat& above, const struct stat& entry) {
    if (!is_trusted(above.st_uid)) return true;
    if ((above.st_mode & S_IWOTH) == 0) return false;
    return (above.st_mode & S_ISVTX) == 0 || !is_trusted(entry.st_uid);
  };
  return first_on_the_way(folder, replaceable, false);
}

}  // namespace rose
