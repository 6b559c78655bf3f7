#include "deploy/loopback.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "deploy/identity.h"

namespace rose::deploy {
namespace {

constexpr const char* kFolder = "/proc/sys/net/ipv4/conf";
constexpr std::size_t kMostSaved = 4096;

// Its name distinguishes it from the locks of deployments (deploy/identity.h).
std::string loopback_file() { return fmt::format("{}/loopback", kLockFolder); }

std::string setting(std::string_view interface, std::string_view name) {
  std::string value = read_file(fmt::format("{}/{}/{}", kFolder, interface, name), 64).value_or("");
  while (!value.empty() && value.back() == '\n') value.pop_back();
  return value;
}

Result<void> set(const std::string& name, const std::string& value) {
  return write_control(fmt::format("{}/lo/{}", kFolder, name), value);
}

// Restores the previous settings, which are in the file. Call it with the lock held exclusively.
std::vector<std::string> restore(int fd) {
  std::string saved(kMostSaved, '\0');
  const auto size = ::pread(fd, saved.data(), saved.size(), 0);
  saved.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  std::vector<std::string> names;
  for (const std::string& line : split(saved, '\n')) {
    const std::vector<std::string> parts = split(line, ' ');
    if (parts.size() == 2 && set(parts[0], parts[1])) names.push_back(parts[0]);
  }
  [[maybe_unused]] const int cut = ::ftruncate(fd, 0);
  return names;
}

}  // namespace

Result<OpenLoopback> OpenLoopback::open() {
  if (::mkdir(kLockFolder, 0700) != 0 && errno != EEXIST)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", kLockFolder), errno);
  Fd lock(::open(loopback_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot lock {}", loopback_file()), errno);
  struct stat info{};
  if (::fstat(lock.get(), &info) == 0 && info.st_size == 0) {
    std::vector<std::pair<std::string, std::string>> wanted{{"route_localnet", "1"}, {"accept_local", "1"}};
    // For rp_filter, the kernel uses the maximum of the settings of `all` and of the interface, so 2 takes effect
    // although the other setting is 1. 2 ("any route back is sufficient") is less strict than 1.
    if (setting("all", "rp_filter") == "1" || setting("lo", "rp_filter") == "1") wanted.emplace_back("rp_filter", "2");
    std::string before;
    for (const auto& [name, value] : wanted) before += fmt::format("{} {}\n", name, setting("lo", name));
    if (::pwrite(lock.get(), before.data(), before.size(), 0) != static_cast<ssize_t>(before.size()))
      return fail_errno(ErrorKind::environment, fmt::format("cannot write {}", loopback_file()), errno);
    for (const auto& [name, value] : wanted) ROSE_CHECK(set(name, value));
  }
  if (::flock(lock.get(), LOCK_SH) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot lock {}", loopback_file()), errno);
  return OpenLoopback(std::move(lock));
}

OpenLoopback::~OpenLoopback() {
  // If another run still needs the settings, it holds a shared lock, so the exclusive lock fails.
  if (lock_ && ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) (void)restore(lock_.get());
}

std::string heal_loopback() {
  const Fd lock(::open(loopback_file().c_str(), O_RDWR | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return {};
  const std::vector<std::string> names = restore(lock.get());
  if (names.empty()) return {};
  return fmt::format("loopback interface: restored {}", fmt::join(names, ", "));
}

}  // namespace rose::deploy
