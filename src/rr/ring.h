// Writes a recording. Many threads append records. A thread waits for another one only if the ring has wrapped around
// to a record that the other one is still writing.
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
  // Creates a new file (mode 0600) and maps it. If this fails, stores the reason in `why`. `ring_bytes` must be a power
  // of two.
  bool create(int folder, const char* name, std::uint64_t ring_bytes, const char* node, char* why, std::size_t room);
  // Returns false if the record was dropped. The header of the file counts such records.
  bool append(Kind kind, std::uint16_t flags, Part key, Part data);
  // The position of the next record.
  [[nodiscard]] std::uint64_t reserved() const { return head_->reserved.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] bool wait_for_room(std::uint64_t from, std::uint64_t to) const;
  FileHead* head_ = nullptr;
  // mapped twice, one after the other, so that a record which continues at the beginning of the ring is contiguous in
  // memory
  char* ring_ = nullptr;
  std::uint64_t bytes_ = 0, segment_ = 0;
};

}  // namespace rose::rr
