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
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/processes.h"

namespace rose::deploy {
namespace {

constexpr std::string_view kSuffix = ".lock";
constexpr std::string_view kUnfinished = ".new-";
constexpr std::size_t kMostRecordBytes = std::size_t{1} << 20;

constexpr std::int64_t kOrphans = 2 * kSecond;
constexpr std::int64_t kHealing = 180 * kSecond;  // time that another heal may take, because engines may be slow

// 0 if the owner is unknown.
pid_t owner_of(const Registration& one) {
  const std::vector<std::string> owner = one.all("owner");
  pid_t pid = 0;
  if (!owner.empty()) std::from_chars(owner.back().data(), owner.back().data() + owner.back().size(), pid);
  return pid;
}

bool owner_is_gone(const Registration& one) {
  const pid_t pid = owner_of(one);
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

void read_notes(Registration& one, const std::filesystem::path& file) {
  one.notes.clear();
  if (const auto content = read_file(file, kMostRecordBytes))
    for (const std::string& line : split(*content, '\n'))
      if (const std::size_t tab = line.find('\t'); tab != std::string::npos)
        one.notes.emplace_back(line.substr(0, tab), line.substr(tab + 1));
}

bool healer_at_work(const std::filesystem::path& file) {
  Registration now;
  read_notes(now, file);
  const std::vector<std::string> healers = now.all(kHealerNote);
  return std::any_of(healers.begin(), healers.end(), [](const std::string& each) {
    const auto pid = still_there(each);
    return pid && *pid != ::getpid();
  });
}

// Waits for the lock of a killed rose. A child that rose had just forked holds the lock until its execve, or until it
// notices that rose has died. The guardian, or another heal, holds it until everything is undone.
bool lock_soon(int fd, const std::filesystem::path& file) {
  const std::int64_t began = monotonic_ns();
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const std::int64_t waited = monotonic_ns() - began;
    if (waited >= kOrphans && (waited >= kHealing || !healer_at_work(file))) return false;
    if (!cancel::sleep(20 * kMillisecond)) return false;
  }
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
    // The id is in use, or a concurrent heal has removed the file as a leftover: try another id.
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

namespace {

// Returns all registrations except the one with the id `except`. With `owner`, returns only those of that process, and
// does not touch the locks of others.
std::vector<Registration> look_up(std::optional<pid_t> owner, std::string_view except) {
  std::vector<Registration> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kLockFolder, error)) {
    const std::string name = entry.path().filename();
    const bool unfinished = name.starts_with(kUnfinished);
    if (!unfinished && !name.ends_with(kSuffix)) continue;
    if (unfinished && owner) continue;
    std::error_code gone;
    if (!std::filesystem::is_regular_file(entry.symlink_status(gone))) continue;  // reading a pipe would wait for ever
    Registration one;
    if (owner) {
      read_notes(one, entry.path());
      if (owner_of(one) != *owner) continue;
    }
    Fd fd(::open(entry.path().c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) continue;
    if (!unfinished) one.id = name.substr(0, name.size() - kSuffix.size());
    if (!unfinished && one.id == except) continue;
    bool alive = ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
    if (unfinished) {
      if (!alive) ::unlink(entry.path().c_str());
      continue;
    }
    read_notes(one, entry.path());
    if (alive && owner_is_gone(one)) {
      alive = !lock_soon(fd.get(), entry.path());
      if (!alive) read_notes(one, entry.path());
    }
    // The owner may have removed the file between the open and the lock. Then nothing has to be undone.
    struct stat info{};
    if (!alive && (::fstat(fd.get(), &info) != 0 || info.st_nlink == 0)) continue;
    one.alive = alive;
    if (!alive) one.lock = std::move(fd);
    found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return found;
}

}  // namespace

std::vector<Registration> registrations() { return look_up(std::nullopt, {}); }
std::vector<Registration> registrations_of(pid_t owner, std::string_view except) { return look_up(owner, except); }

std::vector<Registration> registrations(std::string_view id) {
  Registration one;
  one.id = id;
  one.alive = true;
  read_notes(one, lock_path(id));
  if (one.notes.empty()) return {};
  std::vector<Registration> found;
  found.push_back(std::move(one));
  return found;
}

void Registration::note(std::string_view key, std::string_view value) const {
  const std::string line = fmt::format("{}\t{}\n", key, value);
  if (::write(lock.get(), line.data(), line.size()) < 0) log::debug("cannot write {}: errno {}", lock_path(id), errno);
}

std::optional<pid_t> still_there(const std::string& value) {
  const std::vector<std::string> parts = split(value, ' ');
  pid_t pid = 0;
  std::from_chars(value.data(), value.data() + value.size(), pid);
  if (parts.size() != 2 || pid <= 0) return std::nullopt;
  const auto stat = kernel::process_stat(pid);
  if (!stat || std::to_string(stat->start_ticks) != parts[1]) return std::nullopt;
  return pid;
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
