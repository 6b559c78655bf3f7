// Reads a BPF ring buffer. Ours instead of libbpf's, because a snapshot must know that everything
// produced before it was asked for has been read, and Debian's libbpf does not tell positions.
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

  // `map_fd` stays the caller's; `bytes` is the ring's size.
  [[nodiscard]] Result<void> open(int map_fd, std::size_t bytes);

  // Where the kernel will write next: what was produced before now ends below it.
  [[nodiscard]] std::uint64_t produced() const;
  [[nodiscard]] std::uint64_t consumed() const { return consumed_; }
  // Hands over up to `most` records and gives their space back; stops at one that is still being written.
  std::size_t consume(const std::function<void(std::span<const std::byte>)>& take, std::size_t most);

 private:
  std::uint64_t mask_ = 0;
  std::uint64_t consumed_ = 0;
  std::size_t page_ = 0;
  void* consumer_ = nullptr;  // its first word: how far we are
  void* producer_ = nullptr;  // its first word: how far the kernel is; a page later the data, twice
};

}  // namespace rose::observe
