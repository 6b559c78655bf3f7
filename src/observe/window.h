// The last events, in bounded memory: compact records that overwrite the oldest, texts kept once
// and counted, and storms of equal events collapsed so that they cannot push out what matters.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "observe/decode.h"
#include "trace/event.h"

namespace rose::observe {

// Texts with a count of their users; an id is free again when the last one goes.
class Texts {
 public:
  [[nodiscard]] std::uint32_t take(std::string_view text);  // never 0
  void keep(std::uint32_t id) { ++entries_[id].users; }
  void release(std::uint32_t id);
  [[nodiscard]] std::string_view operator[](std::uint32_t id) const { return entries_[id].text; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t ids() const { return entries_.size(); }
  // A copy by id; free ids are empty.
  [[nodiscard]] std::vector<std::string> copy() const;

 private:
  struct Entry {
    std::string text;
    std::uint32_t users = 0;
  };
  std::deque<Entry> entries_ = std::deque<Entry>(1);  // 0: absent; a deque keeps what ids_ points into
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::uint64_t bytes_ = 0;
};

// An event in 48 bytes. What the fields hold depends on the type; see pack() and unpack().
struct Slot {
  std::int64_t ts_ns = 0;
  std::uint32_t text[3] = {};
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::int32_t a = 0;
  std::int32_t b = 0;
  std::uint32_t count = 1;
  std::int16_t syscall = -1;
  std::int16_t err = 0;
  std::uint8_t node = 0;
  trace::EventType type = trace::EventType::scf;
  std::uint8_t kind = 0;
  std::uint8_t flags = 0;
};
static_assert(sizeof(Slot) == 48);

class Window {
 public:
  Window(std::uint64_t most_events, std::uint64_t most_bytes);

  // Stores, or adds to the record of the storm it belongs to.
  void add(const Decoded& decoded);

  [[nodiscard]] std::uint64_t size() const { return head_ - tail_; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t overwritten() const { return overwritten_; }

  // Everything a trace needs, copied: turning it into one happens without holding up the tracer.
  struct Copy {
    std::vector<Slot> slots;  // oldest first
    std::vector<std::string> texts;
  };
  [[nodiscard]] Copy copy() const;

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 11;
  // Equal events within a second of the first: the first few are kept whole, the rest counted.
  static constexpr std::uint32_t kStorm = 16;
  static constexpr std::int64_t kStormSpan = 1'000'000'000;

  struct Storm {
    std::uint64_t key = 0;
    std::int64_t begin_ns = 0, last_ns = 0;
    std::uint64_t slot = UINT64_MAX;
    std::uint32_t seen = 0;
  };

  Slot& at(std::uint64_t index) { return (*chunks_[(index / kChunk) % chunks_.size()])[index % kChunk]; }
  [[nodiscard]] const Slot& at(std::uint64_t index) const {
    return (*chunks_[(index / kChunk) % chunks_.size()])[index % kChunk];
  }
  [[nodiscard]] std::uint64_t store(const Slot& slot);
  void drop_oldest();
  bool collapse(Storm& storm, const Slot& slot);

  std::uint64_t most_events_, most_bytes_;
  std::vector<std::unique_ptr<std::vector<Slot>>> chunks_;
  std::uint64_t allocated_ = 0;
  std::uint64_t head_ = 0, tail_ = 0;  // ever growing; a slot's place is its number modulo all places
  std::uint64_t overwritten_ = 0;
  std::vector<Storm> storms_;
  Texts texts_;
};

// The event a slot stands for; string ids are those of the window's texts, node stays 0, ts_ns monotonic.
// The function of an AF is in `function`, as a number.
[[nodiscard]] trace::Event unpack(const Slot& slot);
[[nodiscard]] inline std::uint32_t function_of(const Slot& slot) { return static_cast<std::uint32_t>(slot.a); }

}  // namespace rose::observe
