#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/folder.h"
#include "base/read_all.h"

namespace rose {

namespace {

// The path of an open file. It also works for a file without a name and for one that was opened with O_PATH.
std::string own_link(const Fd& fd) { return fmt::format("/proc/self/fd/{}", fd.get()); }

}  // namespace

Fd open_regular(const std::filesystem::path& path) { return open_regular_at(AT_FDCWD, path); }

Fd open_regular_at(int folder, const std::filesystem::path& path, int flags) {
  const Fd found(::openat(folder, path.c_str(), O_PATH | O_CLOEXEC | flags));
  struct stat info{};
  if (!found || ::fstat(found.get(), &info) != 0) return {};
  if (S_ISREG(info.st_mode)) return Fd(::open(own_link(found).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  errno = EINVAL;
  return {};
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t most) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const int err = errno;
    return fail(ErrorKind::input, fmt::format("cannot open {}: {}", path.string(), std::strerror(err)));
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode))
    return fail(ErrorKind::input, fmt::format("{} is a directory, a file is needed", path.string()));
  return read_all(fd.get(), path, most);
}

Result<void> write_file(const std::filesystem::path& path, std::string_view content, mode_t mode) {
  ROSE_TRY(AtomicFile file, AtomicFile::create(path, mode));
  ROSE_CHECK(file.write(content));
  return file.commit();
}

Result<void> write_new_file(const std::filesystem::path& path, std::string_view content, mode_t mode) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd && errno == EEXIST)
    return fail(ErrorKind::usage, fmt::format("{} exists and is not overwritten", path.string()),
                "choose another name with -o");
  if (!fd) return fail_errno(ErrorKind::usage, fmt::format("cannot create {}", path.string()), errno);
  int error = write_bytes(fd.get(), content);
  if (error == 0 && ::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) error = errno;
  if (error == 0) return {};
  ::unlink(path.c_str());
  return fail_errno(ErrorKind::environment, fmt::format("cannot write {}", path.string()), error);
}

int write_bytes(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

Result<void> write_control(const std::filesystem::path& path, std::string_view content) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorKind::environment, fmt::format("cannot open {}", path.string()), errno);
  if (::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    return fail_errno(ErrorKind::environment, fmt::format("cannot write '{}' to {}", content, path.string()), errno);
  return {};
}

namespace {

// The descriptor that a name such as /dev/stdout stands for. These names are links in system folders. Renaming a file
// over such a link would break the name for every program.
std::optional<int> named_descriptor(const std::filesystem::path& path) {
  const std::string name = path.lexically_normal().string();
  if (name == "/dev/stdout") return STDOUT_FILENO;
  if (name == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!name.starts_with(folder)) continue;
    int number = -1;
    const char* const end = name.data() + name.size();
    const auto [last, error] = std::from_chars(name.data() + folder.size(), end, number);
    if (error == std::errc() && last == end && number >= 0) return number;
  }
  return std::nullopt;
}

// marks the name of a temporary file; it stands between the final name and six random letters
constexpr std::string_view kUnfinished = ".rose-";

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// True if the existing file is written in place. Links are not followed, because a user who can write to the folder
// could otherwise redirect rose, which runs as root, to a device. A pipe must belong to this user, because what is
// written to another user's pipe reaches that user.
Result<bool> written_in_place(const std::filesystem::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISLNK(info.st_mode) || S_ISDIR(info.st_mode))
    return false;
  if (S_ISBLK(info.st_mode) || S_ISSOCK(info.st_mode))
    return fail(ErrorKind::input, fmt::format("{} is a {}, a file is needed", path.string(),
                                              S_ISBLK(info.st_mode) ? "block device" : "socket"));
  if (S_ISFIFO(info.st_mode) && info.st_uid != ::geteuid())
    return fail(ErrorKind::input, fmt::format("{} is a pipe of another user", path.string()),
                "name a file, or a pipe that belongs to this user");
  if (::access(path.c_str(), W_OK) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path.string()), errno);
  return true;
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& path, mode_t mode) {
  AtomicFile file;
  file.path_ = path;
  if (const std::optional<int> descriptor = named_descriptor(path)) {
    file.fd_ = Fd(::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0));
    if (!file.fd_) return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path.string()), errno);
    return file;
  }
  ROSE_TRY(const bool in_place, written_in_place(path));
  if (in_place) return file;
  file.in_place_ = false;
  const auto cannot = [&] {
    return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path.string()), errno);
  };
  const std::filesystem::path folder = folder_of(path);
  file.fd_ = Fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (file.fd_ && ::access(own_link(file.fd_).c_str(), F_OK) != 0) file.fd_.reset();
  if (!file.fd_) {
    std::string name = (folder / fmt::format(".{}{}XXXXXX", path.filename().string(), kUnfinished)).string();
    file.fd_ = Fd(::mkostemp(name.data(), O_CLOEXEC));
    if (!file.fd_) return cannot();
    file.temporary_ = name;
  }
  // The lock shows remove_unfinished() that the writer still runs.
  if (::flock(file.fd_.get(), LOCK_EX | LOCK_NB) != 0 && !file.temporary_.empty()) return cannot();
  if (::fchmod(file.fd_.get(), mode) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot set the mode of {}", path.string()), errno);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      in_place_(other.in_place_),
      temporary_(std::exchange(other.temporary_, {})) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> AtomicFile::write(std::string_view bytes) {
  if (!fd_) {
    // Without O_NONBLOCK, opening a pipe would wait indefinitely for a reader.
    fd_ = Fd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK));
    if (!fd_ && errno == ENXIO)
      return fail(ErrorKind::input, fmt::format("cannot write {}: nobody reads this pipe", path_.string()),
                  "start what reads it first");
    if (fd_) ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) & ~O_NONBLOCK);
    if (!fd_) return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path_.string()), errno);
  }
  if (const int error = write_bytes(fd_.get(), bytes); error != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path_.string()), error);
  return {};
}

Result<void> AtomicFile::resize(std::uint64_t bytes) {
  if (in_place_)
    return fail(ErrorKind::input, fmt::format("cannot write {}: it is not a regular file", path_.string()));
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path_.string()), errno);
  return {};
}

Result<void> AtomicFile::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path_.string()), errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

// link(2) cannot replace an existing file. To replace one, link the new file under a temporary name and rename it.
Result<void> AtomicFile::link_over() {
  const std::string from = own_link(fd_);
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
  for (int tries = 0; errno == EEXIST && tries < 100; ++tries) {
    const std::filesystem::path name =
        folder_of(path_) / fmt::format(".{}{}{:06x}", path_.filename().string(), kUnfinished,
                                       static_cast<std::uint64_t>(monotonic_ns() + ::getpid()) & 0xffffff);
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) continue;
    if (::rename(name.c_str(), path_.c_str()) == 0) return {};
    const int err = errno;
    ::unlink(name.c_str());
    errno = err;
    break;
  }
  return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path_.string()), errno);
}

Result<void> AtomicFile::commit() {
  if (in_place_) return {};
  if (::fsync(fd_.get()) != 0 && errno != EINVAL)
    return fail_errno(ErrorKind::input, fmt::format("cannot sync {}", path_.string()), errno);
  if (temporary_.empty()) {
    ROSE_CHECK(link_over());
  } else {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
      return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path_.string()), errno);
    temporary_.clear();
  }
  // Without this sync, the new name may be lost in a power failure. A folder that cannot be read cannot be synced.
  const Fd folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.get());
  in_place_ = true;
  return {};
}

void remove_unfinished(const std::filesystem::path& folder, std::string_view prefix) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::size_t mark = name.rfind(kUnfinished);
    if (!name.starts_with(fmt::format(".{}", prefix)) || mark == std::string::npos ||
        mark + kUnfinished.size() + 6 != name.size())
      continue;
    const Fd file(::open(it->path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(it->path().c_str());
  }
}

namespace {

constexpr std::size_t kRandom = 6;  // characters that mkdtemp() chooses

// Describes a lock on a folder that belongs to an open file description (F_OFD_SETLK). It does not conflict with
// flock(), which users of the folder may need themselves, and its state can be queried without taking the lock. The
// lock is held until every process that inherited the description has closed it.
flock64 folder_lock(short type) {
  flock64 lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}
bool lock_folder(const Fd& folder) {
  flock64 lock = folder_lock(F_RDLCK);
  return folder && ::fcntl(folder.get(), F_OFD_SETLK, &lock) == 0;
}
bool is_locked(const Fd& folder) {
  flock64 lock = folder_lock(F_WRLCK);
  return ::fcntl(folder.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// Removes the folders "PREFIX.XXXXXX" of processes that were killed. A folder gets this name only after it was locked,
// so one without a lock is not in use.
void remove_abandoned(const std::filesystem::path& base, std::string_view prefix) {
  std::error_code error;
  std::vector<std::filesystem::path> all;
  for (std::filesystem::directory_iterator it(base, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() == prefix.size() + 1 + kRandom && name.starts_with(prefix) && name[prefix.size()] == '.')
      all.push_back(it->path());
  }
  for (const std::filesystem::path& path : all) {
    const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info{};
    if (!folder || ::fstat(folder.get(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    if (!is_locked(folder)) remove_tree(path);
  }
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make(std::string_view prefix) {
  const char* given = std::getenv("TMPDIR");
  const std::filesystem::path base = given != nullptr && *given != '\0' ? given : "/tmp";
  remove_abandoned(base, prefix);
  std::string made = (base / fmt::format("{}-XXXXXX", prefix)).string();
  if (::mkdtemp(made.data()) == nullptr)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create a folder '{}'", made), errno);
  Fd lock(::open(made.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string name = made;
  name[name.size() - kRandom - 1] = '.';
  // If the file system has no locks, or the new name is in use, the folder keeps its first name. Other processes do not
  // remove folders with names of that form.
  if (!lock_folder(lock) || ::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) != 0)
    name = made;
  return TemporaryFolder(name, std::move(lock));
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) remove_tree(path_);
}

}  // namespace rose
