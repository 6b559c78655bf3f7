// Reads ranges of files completely, although one call may return less, and finds where a hole ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rose {

// Reads up to `bytes` from `offset` into `to` and returns how many were read. If fewer were read, errno has the reason;
// it is 0 at the end of the file.
[[nodiscard]] std::size_t read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset);

// The start of the first data at or after `offset`; nullopt if no data follows. Returns `offset` if the file system
// cannot report holes.
[[nodiscard]] std::optional<std::uint64_t> next_data(int fd, std::uint64_t offset);

}  // namespace rose
