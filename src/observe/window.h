// Keeps the latest events in bounded memory, as a ring of blocks in the dump's format. Events are added to an open
// block. A full block is immutable, and the window's own thread packs it, so that most bytes of a dump exist before the
// dump is requested. The oldest blocks are dropped as a whole, but a snapshot never contains more events than
// configured. Events that compress well could make the window exceed the limits of readers (trace/limits.h), so blocks
// are dropped at these limits, too.
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

// Memory of all blocks of a window, including blocks to which only a snapshot still refers.
using Account = std::atomic<std::uint64_t>;

// Immutable: packing creates a new block.
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
  [[nodiscard]] const std::shared_ptr<Account>& account() const { return account_; }
  // Returns the block in packed form, without its first `skip` events.
  [[nodiscard]] Result<trace::PackedEvents> pack(std::uint64_t skip) const;

 private:
  std::uint64_t events_, memory_, strings_, string_bytes_;
  std::unique_ptr<Raw> raw_;
  trace::PackedEvents packed_;
  std::shared_ptr<Account> account_;
};

}  // namespace window

// The window at the time of the snapshot. Blocks are released as they are read.
class Snapshot {
 public:
  // The number of events when the snapshot was taken.
  [[nodiscard]] std::uint64_t events() const { return events_; }
  // The next block, oldest first; nothing at the end.
  [[nodiscard]] Result<std::optional<trace::PackedEvents>> next();
  // Packs the blocks that are not packed yet. Returns the size of all blocks in a dump.
  [[nodiscard]] Result<std::uint64_t> pack();
  // Drops the oldest events until the remaining blocks have at most `most` bytes. Call it only after pack(). Returns
  // the number of events that were dropped.
  std::uint64_t shorten(std::uint64_t most);
  [[nodiscard]] bool empty() const;
  // Number of events that were dropped before they were read, because the reader was too slow.
  [[nodiscard]] std::uint64_t missed() const;

 private:
  friend class Window;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const window::Block>> blocks_;
  std::uint64_t skip_ = 0;  // number of events of the first block that are left out
  std::uint64_t events_ = 0, missed_ = 0;
};

class Window {
 public:
  using FunctionName = std::function<std::string_view(std::uint32_t)>;
  Window(std::uint64_t most_events, std::uint64_t most_bytes, std::vector<std::string> nodes, FunctionName function);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Only one thread at a time may add events or take a snapshot. Reading a snapshot and packing do not block add().
  void add(const Decoded& decoded);
  [[nodiscard]] std::shared_ptr<Snapshot> snapshot();

  // The number of events in a snapshot. It is never larger than configured, although up to one more block is kept.
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::uint64_t bytes() const;
  // Waits until all full blocks are packed; for tests and measurements.
  void settle();
  // The number of snapshots that may still be read.
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
  std::vector<trace::StringId> node_ids_;  // ids in the open block; 0: not assigned

  mutable std::mutex mutex_;  // protects the members below; never held while packing or writing
  std::deque<std::shared_ptr<const window::Block>> blocks_;
  std::uint64_t sealed_events_ = 0, strings_ = 0, string_bytes_ = 0;  // totals of blocks_
  std::uint64_t waiting_ = 0;                                         // bytes not packed yet
  std::vector<std::weak_ptr<Snapshot>> snapshots_;
  std::size_t packing_ = 0;
  bool stopping_ = false;
  std::condition_variable work_, done_;
  std::thread packer_;
};

}  // namespace rose::observe
