#include "deploy/identity.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

namespace rose::deploy {
namespace {

constexpr std::string_view kSuffix = ".lock";
constexpr std::string_view kUnfinished = ".new-";
constexpr std::size_t kMostRecordBytes = std::size_t{1} << 20;

constexpr std::int64_t kOrphans = 2 * kSecond;

// A child that a killed rose had just forked holds its lock until its execve, or until it notices. If the owner is in
// another PID namespace, its state cannot be determined.
bool owner_is_gone(const Registration& one) {
  const std::vector<std::string> owner = one.all("owner");
  pid_t pid = 0;
  if (owner.empty()) return false;
  std::from_chars(owner.back().data(), owner.back().data() + owner.back().size(), pid);
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

bool lock_soon(int fd) {
  const std::int64_t until = monotonic_ns() + kOrphans;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    if (monotonic_ns() >= until || !cancel::sleep(20 * kMillisecond)) return false;
  return true;
}

std::string lock_path(std::string_view id) { return fmt::format("{}/{}{}", kLockFolder, id, kSuffix); }

}  // namespace

Result<Identity> Identity::create() {
  if (::mkdir(kLockFolder, 0700) != 0 && errno != EEXIST)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", kLockFolder), errno);
  struct stat info{};
  if (::lstat(kLockFolder, &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return fail(ErrorKind::environment, fmt::format("{} does not belong to the user who runs rose", kLockFolder),
                "run as root");
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::uint32_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random)
      return fail_errno(ErrorKind::environment, "getrandom", errno);
    Identity identity;
    identity.id_ = fmt::format("rose-{:06x}", random & 0xffffff);
    // Lock the file before it gets its name, so that the lock of a running deployment is never seen free.
    std::string temporary = fmt::format("{}/{}XXXXXX", kLockFolder, kUnfinished);
    identity.fd_ = Fd(::mkostemp(temporary.data(), O_CLOEXEC | O_APPEND));
    if (!identity.fd_)
      return fail_errno(ErrorKind::environment, fmt::format("cannot create a file in {}", kLockFolder), errno);
    const bool locked = ::flock(identity.fd_.get(), LOCK_EX | LOCK_NB) == 0;
    const bool named = locked && ::link(temporary.c_str(), lock_path(identity.id_).c_str()) == 0;
    ::unlink(temporary.c_str());
    if (named) {
      ROSE_CHECK(identity.note("owner", std::to_string(::getpid())));
      return identity;
    }
    // The id is in use, or a heal took the file for a leftover: try another one.
    identity.fd_.reset();
  }
  return fail(ErrorKind::environment, fmt::format("cannot create a lock file in {}", kLockFolder), "run 'rose heal'");
}

Identity::~Identity() { release(); }

Result<void> Identity::note(std::string_view key, std::string_view value) {
  if (value.find('\n') != std::string_view::npos)
    return fail(ErrorKind::input, fmt::format("a path with a line break is not supported: '{}'", value));
  const std::string line = fmt::format("{}\t{}\n", key, value);
  if (::write(fd_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return fail_errno(ErrorKind::environment, fmt::format("cannot write {}", lock_path(id_)), errno);
  return {};
}

void Identity::release() {
  if (!fd_) return;
  ::unlink(lock_path(id_).c_str());
  fd_.reset();
}

std::vector<Registration> registrations() {
  std::vector<Registration> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kLockFolder, error)) {
    const std::string name = entry.path().filename();
    const bool unfinished = name.starts_with(kUnfinished);
    if (!unfinished && !name.ends_with(kSuffix)) continue;
    Fd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) continue;
    bool alive = ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
    if (unfinished) {
      if (!alive) ::unlink(entry.path().c_str());
      continue;
    }
    Registration one;
    one.id = name.substr(0, name.size() - kSuffix.size());
    if (const auto content = read_file(entry.path(), kMostRecordBytes))
      for (const std::string& line : split(*content, '\n'))
        if (const std::size_t tab = line.find('\t'); tab != std::string::npos)
          one.notes.emplace_back(line.substr(0, tab), line.substr(tab + 1));
    if (alive && owner_is_gone(one)) alive = !lock_soon(fd.get());
    // Its owner may have finished between the open and the lock.
    struct stat info{};
    if (!alive && (::fstat(fd.get(), &info) != 0 || info.st_nlink == 0)) continue;
    one.alive = alive;
    if (!alive) one.lock = std::move(fd);
    found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return found;
}

std::vector<std::string> Registration::all(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : notes)
    if (name == key) values.push_back(value);
  return values;
}

std::string id_of(std::string_view name) {
  constexpr std::string_view prefix = "rose-";
  const std::size_t length = prefix.size() + 6;
  const bool regular = name.size() >= length && name.starts_with(prefix) &&
                       name.substr(prefix.size(), 6).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
                       (name.size() == length || name[length] == '-');
  return std::string(regular ? name.substr(0, length) : name);
}

}  // namespace rose::deploy
