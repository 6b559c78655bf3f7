#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace rose {

Result<std::string> read_file(const std::filesystem::path& path, std::size_t most) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const int err = errno;
    return fail(ErrorKind::input, fmt::format("cannot open {}: {}", path.string(), std::strerror(err)));
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode))
    return fail(ErrorKind::input, fmt::format("{} is a directory, a file is needed", path.string()));
  std::string content;
  std::vector<char> buffer(std::size_t{1} << 16);
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(ErrorKind::input, fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    if (n == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(n));
    if (content.size() > most)
      return fail(ErrorKind::input, fmt::format("{} is larger than {} bytes", path.string(), most));
  }
}

Result<void> write_file(const std::filesystem::path& path, std::string_view content, mode_t mode) {
  ROSE_TRY(AtomicFile file, AtomicFile::create(path, mode));
  ROSE_CHECK(file.write(content));
  return file.commit();
}

Result<void> write_control(const std::filesystem::path& path, std::string_view content) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorKind::environment, fmt::format("cannot open {}", path.string()), errno);
  if (::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    return fail_errno(ErrorKind::environment,
                      fmt::format("cannot write '{}' to {}", content, path.string()), errno);
  return {};
}

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& path, mode_t mode) {
  AtomicFile file;
  file.path_ = path;
  std::string name = path.string() + ".XXXXXX";
  file.fd_ = Fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.fd_) return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path.string()), errno);
  file.temporary_ = name;
  if (::fchmod(file.fd_.get(), mode) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot set the mode of {}", name), errno);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path_.string()), errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> AtomicFile::commit() {
  if (::fsync(fd_.get()) != 0 && errno != EINVAL)
    return fail_errno(ErrorKind::input, fmt::format("cannot sync {}", path_.string()), errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot write {}", path_.string()), errno);
  temporary_.clear();
  return {};
}

}  // namespace rose
