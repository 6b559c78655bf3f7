// Reads a range of a file completely. The kernel may return less per call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rose {

// Reads up to `bytes` from `offset` into `to` and returns how many were read. If fewer: errno has the reason, or is 0
// at the end of the file.
[[nodiscard]] std::size_t read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset);

}  // namespace rose
