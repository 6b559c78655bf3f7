// Reads files at a place: ranges completely, although the kernel may return less per call, and not their holes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rose {

// Reads up to `bytes` from `offset` into `to` and returns how many were read. If fewer: errno has the reason, or is 0
// at the end of the file.
[[nodiscard]] std::size_t read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset);

// Where data begins at `offset` or behind it; nothing if there is only a hole, or nothing, up to the end of the file.
// `offset` itself where the file system does not tell.
[[nodiscard]] std::optional<std::uint64_t> next_data(int fd, std::uint64_t offset);

}  // namespace rose
