// A part of a file, whole: the kernel may give less at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rose {

// How many bytes were read from `offset` on, into `to`. Fewer than `bytes`: errno says why, 0 that the file ends there.
[[nodiscard]] std::size_t read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset);

}  // namespace rose
