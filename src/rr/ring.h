// Writing a recording: many threads append, none waits for another unless the ring has gone round while that one was
// writing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rr/layout.h"

namespace rose::rr {

struct Part {
  const void* data;
  std::size_t bytes;
};

class Ring {
 public:
  // Makes the file (0600, it must be new) and maps it. Else an explanation is put into `why`. `ring_bytes`: a power of
  // two.
  bool create(int folder, const char* name, std::uint64_t ring_bytes, const char* node, char* why, std::size_t room);
  // False: it was given up, and the file says so.
  bool append(Kind kind, std::uint16_t flags, Part key, Part data);
  // The position of the next record.
  [[nodiscard]] std::uint64_t reserved() const { return head_->reserved.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] bool wait_for_room(std::uint64_t from, std::uint64_t to) const;
  FileHead* head_ = nullptr;
  char* ring_ = nullptr;  // mapped twice, one behind the other: what goes on at the beginning is whole in memory
  std::uint64_t bytes_ = 0, segment_ = 0;
};

}  // namespace rose::rr
