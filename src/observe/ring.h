// Reads a BPF ring buffer. Used instead of libbpf's reader, because Debian's libbpf does not report positions.
// Positions are needed for a snapshot: it must contain everything that was produced before it was requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"

namespace rose::observe {

class Ring {
 public:
  Ring() = default;
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // `map_fd` remains the caller's; `bytes` is the size of the ring.
  [[nodiscard]] Result<void> open(int map_fd, std::size_t bytes);

  // The kernel's write position: everything produced before now is below it.
  [[nodiscard]] std::uint64_t produced() const;
  [[nodiscard]] std::uint64_t consumed() const { return consumed_; }
  // Passes up to `most` records to `take` and releases their space. Stops at a record that is still being written.
  std::size_t consume(const std::function<void(std::span<const std::byte>)>& take, std::size_t most);

 private:
  std::uint64_t mask_ = 0;
  std::uint64_t consumed_ = 0;
  std::size_t page_ = 0;
  void* consumer_ = nullptr;  // its first word is the read position
  void* producer_ = nullptr;  // its first word is the write position; the data follows one page later, mapped twice
};

}  // namespace rose::observe
