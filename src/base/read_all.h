// Reads a descriptor to its end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace rose {

// `path`: for messages. ErrorKind::input if it cannot be read or has more than `most` bytes.
[[nodiscard]] Result<std::string> read_all(int fd, const std::filesystem::path& path, std::size_t most);

}  // namespace rose
