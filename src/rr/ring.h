// Writes a recording. Many threads append, and none waits for another unless the ring has wrapped around to a record
// that is still being written.
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
  // Creates a new file (mode 0600) and maps it. If that fails, stores the reason in `why`. `ring_bytes` must be a power
  // of two.
  bool create(int folder, const char* name, std::uint64_t ring_bytes, const char* node, char* why, std::size_t room);
  // Returns false if the record was dropped. The file then contains a mark for that.
  bool append(Kind kind, std::uint16_t flags, Part key, Part data);
  // The position of the next record.
  [[nodiscard]] std::uint64_t reserved() const { return head_->reserved.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] bool wait_for_room(std::uint64_t from, std::uint64_t to) const;
  FileHead* head_ = nullptr;
  char* ring_ = nullptr;  // mapped twice in a row, so that records that wrap around are contiguous in memory
  std::uint64_t bytes_ = 0, segment_ = 0;
};

}  // namespace rose::rr
