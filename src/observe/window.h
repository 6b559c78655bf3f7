// The last events, in bounded memory: a ring of blocks in the dump's own form. Events go to an open block; a full
// one never changes again and is packed by a thread of the window's own, so that a dump is mostly
// bytes that exist already. The oldest blocks fall away whole, except that a snapshot never holds more events than
// asked for. What packs well could fill the memory with more than a dump's reader takes (trace/limits.h): that falls
// away as well.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "observe/decode.h"
#include "trace/block.h"
#include "trace/event.h"

namespace rose::observe {

namespace window {

struct Raw {
  std::vector<trace::Event> events;
  trace::StringTable strings;
  [[nodiscard]] std::uint64_t memory() const { return events.capacity() * sizeof(trace::Event) + strings.memory(); }
};

// What all blocks of a window need together, those included that only a snapshot still holds.
using Account = std::atomic<std::uint64_t>;

// Never changes: packing makes another one.
class Block {
 public:
  Block(std::unique_ptr<Raw> raw, std::shared_ptr<Account> account);
  Block(trace::PackedEvents packed, std::shared_ptr<Account> account);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t memory() const { return memory_; }
  [[nodiscard]] std::uint64_t strings() const { return strings_; }
  [[nodiscard]] std::uint64_t string_bytes() const { return string_bytes_; }
  [[nodiscard]] bool is_packed() const { return raw_ == nullptr; }
  [[nodiscard]] const trace::PackedEvents& packed() const { return packed_; }
  // Packs what is not packed, without its first `skip` events.
  [[nodiscard]] Result<trace::PackedEvents> pack(std::uint64_t skip) const;

 private:
  std::uint64_t events_, memory_, strings_, string_bytes_;
  std::unique_ptr<Raw> raw_;
  trace::PackedEvents packed_;
  std::shared_ptr<Account> account_;
};

}  // namespace window

// The window at one moment. It is read block by block, and what was read is let go of.
class Snapshot {
 public:
  // At the beginning.
  [[nodiscard]] std::uint64_t events() const { return events_; }
  // The next block, oldest first; none when there are no more.
  [[nodiscard]] Result<std::optional<trace::PackedEvents>> next();
  // Events that had to make room for new ones before they were read: whoever reads is too slow.
  [[nodiscard]] std::uint64_t missed() const;

 private:
  friend class Window;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const window::Block>> blocks_;
  std::uint64_t skip_ = 0;  // of the first block
  std::uint64_t events_ = 0, missed_ = 0;
};

class Window {
 public:
  using FunctionName = std::function<std::string_view(std::uint32_t)>;
  Window(std::uint64_t most_events, std::uint64_t most_bytes, std::vector<std::string> nodes, FunctionName function);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // One thread at a time adds or takes a snapshot; what reads a snapshot, or packs, holds up neither.
  void add(const Decoded& decoded);
  [[nodiscard]] std::shared_ptr<Snapshot> snapshot();

  // Never more than asked for, though up to a block more is kept.
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::uint64_t bytes() const;
  // Until all full blocks are packed; for tests and measurements.
  void settle();
  // How many are kept in mind because somebody may still read them.
  [[nodiscard]] std::size_t snapshots() const;

 private:
  void seal();
  void open_anew();
  void make_room();
  void drop_oldest();
  void run();
  [[nodiscard]] bool pack_one(std::unique_lock<std::mutex>& lock);

  const std::uint64_t most_events_, most_bytes_;
  const std::size_t block_events_, block_string_bytes_;
  const std::vector<std::string> nodes_;
  const FunctionName function_;
  std::shared_ptr<window::Account> account_ = std::make_shared<window::Account>(0);

  std::unique_ptr<window::Raw> open_;
  std::vector<trace::StringId> node_ids_;  // in the open block; 0: not yet

  mutable std::mutex mutex_;  // of what follows; never held while something is packed or written
  std::deque<std::shared_ptr<const window::Block>> blocks_;
  std::uint64_t sealed_events_ = 0, strings_ = 0, string_bytes_ = 0;  // in blocks_
  std::uint64_t waiting_ = 0;                                         // bytes not packed yet
  std::vector<std::weak_ptr<Snapshot>> snapshots_;
  std::size_t packing_ = 0;
  bool stopping_ = false;
  std::condition_variable work_, done_;
  std::thread packer_;
};

}  // namespace rose::observe
