#include "base/read_all.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace rose {

Result<std::string> read_all(int fd, const std::filesystem::path& path, std::size_t most) {
  std::string content;
  std::vector<char> buffer(std::size_t{1} << 16);
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorKind::input, fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    if (n == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(n));
    if (content.size() > most)
      return fail(ErrorKind::input, fmt::format("{} is larger than {} bytes", path.string(), most));
  }
}

}  // namespace rose
