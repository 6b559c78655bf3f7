#include "observe/window.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "trace/limits.h"

namespace rose::observe {
namespace window {

Block::Block(std::unique_ptr<Raw> raw, std::shared_ptr<Account> account)
    : events_(raw->events.size()),
      memory_(raw->memory()),
      strings_(raw->strings.size()),
      string_bytes_(raw->strings.bytes()),
      raw_(std::move(raw)),
      account_(std::move(account)) {
  *account_ += memory_;
}

Block::Block(trace::PackedEvents packed, std::shared_ptr<Account> account)
    : events_(packed.events),
      memory_(packed.block.capacity() + sizeof(Block)),
      strings_(packed.strings),
      string_bytes_(packed.string_bytes),
      packed_(std::move(packed)),
      account_(std::move(account)) {
  *account_ += memory_;
}

Block::~Block() { *account_ -= memory_; }

Result<trace::PackedEvents> Block::pack(std::uint64_t skip) const {
  if (raw_) return trace::pack_events(std::span<const trace::Event>(raw_->events).subspan(skip), raw_->strings.all());
  if (skip == 0) return packed_;
  trace::BlockHeader header;
  std::string raw;
  trace::Trace trace;
  std::size_t strings = 0;
  auto fault = trace::open_block(packed_.block, header, raw);
  if (!fault) fault = trace::unpack_events(header, raw, 0, trace, strings);
  if (fault) return fail(ErrorKind::bug, "a block of the window is not valid: " + *fault);
  return trace::pack_events(std::span<const trace::Event>(trace.events).subspan(skip), trace.strings.all());
}

}  // namespace window

using window::Block;

constexpr std::uint64_t kLeastEvents = 16;  // a part of a block with fewer events is not worth a file

Result<std::optional<trace::PackedEvents>> Snapshot::next() {
  std::shared_ptr<const Block> block;
  std::uint64_t skip = 0;
  {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return std::nullopt;
    block = std::move(blocks_.front());
    blocks_.pop_front();
    skip = std::exchange(skip_, 0);
  }
  ROSE_TRY(trace::PackedEvents packed, block->pack(skip));
  return packed;
}

// Does not wait for the window's own thread, which may be packing the same block meanwhile. Such a block is packed
// twice.
Result<std::uint64_t> Snapshot::pack() {
  std::uint64_t bytes = 0;
  std::deque<std::shared_ptr<const Block>> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks = blocks_;
  }
  for (auto& block : blocks) {
    if (!block->is_packed()) {
      ROSE_TRY(trace::PackedEvents packed, block->pack(0));
      auto better = std::make_shared<const Block>(std::move(packed), block->account());
      const std::lock_guard lock(mutex_);
      if (const auto at = std::find(blocks_.begin(), blocks_.end(), block); at != blocks_.end()) *at = better;
      block = std::move(better);
    }
    bytes += block->packed().block.size();
    block.reset();  // releases the block, so that its memory is freed if it is dropped meanwhile
  }
  return bytes;
}

std::uint64_t Snapshot::shorten(std::uint64_t most) {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0, before = 0;
  std::size_t kept = 0;
  for (const auto& block : blocks_) before += block->events();
  before -= skip_;
  while (kept < blocks_.size() && bytes + blocks_[blocks_.size() - 1 - kept]->packed().block.size() <= most)
    bytes += blocks_[blocks_.size() - 1 - kept++]->packed().block.size();
  // If not even the newest block fits, take its newest events.
  std::shared_ptr<const Block> part;
  if (kept == 0 && !blocks_.empty()) {
    const Block& newest = *blocks_.back();
    for (std::uint64_t left = newest.events() / 2; left >= kLeastEvents && !part; left /= 2)
      if (auto packed = newest.pack(newest.events() - left); packed && packed->block.size() <= most)
        part = std::make_shared<const Block>(std::move(*packed), newest.account());
  }
  if (kept < blocks_.size()) skip_ = 0;
  while (blocks_.size() > kept) blocks_.pop_front();
  if (part) blocks_.push_back(std::move(part));
  std::uint64_t after = 0;
  for (const auto& block : blocks_) after += block->events();
  return before - (after - skip_);
}

bool Snapshot::empty() const {
  const std::lock_guard lock(mutex_);
  return blocks_.empty();
}

std::uint64_t Snapshot::missed() const {
  const std::lock_guard lock(mutex_);
  return missed_;
}

Window::Window(std::uint64_t most_events, std::uint64_t most_bytes, std::vector<std::string> nodes,
               FunctionName function)
    : most_events_(std::clamp<std::uint64_t>(most_events, 1, trace::kMostWindow)),
      most_bytes_(most_bytes),
      // The open block and the block that is being packed must both fit into the memory. The events of a block use at
      // most 1/16 of it. The strings use at most 1/32, and several times that with their index.
      block_events_(std::clamp<std::uint64_t>(std::min(most_events_ / 4, most_bytes / 16 / sizeof(trace::Event)), 128,
                                              trace::kBlockEvents)),
      block_string_bytes_(std::clamp<std::uint64_t>(most_bytes / 32, 16 << 10, trace::kBlockStringBytes)),
      nodes_(std::move(nodes)),
      function_(std::move(function)) {
  open_anew();
  if (auto packer = start_thread([this] { run(); })) packer_ = std::move(*packer);
  else log::warning("the reader packs the window itself: {}", packer.error().message);
}

Window::~Window() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  if (packer_.joinable()) packer_.join();
}

void Window::open_anew() {
  open_ = std::make_unique<window::Raw>();
  open_->events.reserve(block_events_);
  node_ids_.assign(nodes_.size(), 0);
}

std::uint64_t Window::size() const {
  const std::lock_guard lock(mutex_);
  return std::min(sealed_events_ + open_->events.size(), most_events_);
}

std::uint64_t Window::bytes() const { return *account_ + open_->memory(); }

void Window::add(const Decoded& decoded) {
  trace::Event& event = open_->events.emplace_back(decoded.event);
  auto& strings = open_->strings;
  if (decoded.node < nodes_.size()) {
    auto& id = node_ids_[decoded.node];
    if (id == 0) id = strings.intern(nodes_[decoded.node]);
    event.node = id;
  }
  switch (event.type) {
    case trace::EventType::scf:
    case trace::EventType::sys:
      if (decoded.has_path) event.path = strings.intern(decoded.path);
      if (decoded.has_path2) event.path2 = strings.intern(decoded.path2);
      if (decoded.has_peer) event.peer = strings.intern(decoded.peer);
      break;
    case trace::EventType::af:
      event.function = strings.intern(decoded.has_path ? std::string_view(decoded.path) : function_(decoded.function));
      break;
    case trace::EventType::nd:
      event.src = strings.intern(decoded.src);
      event.dst = strings.intern(decoded.dst);
      break;
    case trace::EventType::ps:
      if (decoded.has_by) event.by = strings.intern(decoded.by);
      break;
  }
  if (open_->events.size() >= block_events_ || strings.bytes() >= block_string_bytes_) seal();
}

void Window::seal() {
  auto block = std::make_shared<const Block>(std::move(open_), account_);
  open_anew();
  std::unique_lock lock(mutex_);
  sealed_events_ += block->events();
  strings_ += block->strings();
  string_bytes_ += block->string_bytes();
  waiting_ += block->memory();
  blocks_.push_back(std::move(block));
  make_room();
  work_.notify_one();
  // If the packing thread cannot keep up, blocks that are not packed would use up the memory, and the window would hold
  // few events. Therefore the adding thread helps.
  if (waiting_ > std::max<std::uint64_t>(most_bytes_ / 8, 1) || !packer_.joinable()) (void)pack_one(lock);
}

void Window::drop_oldest() {
  const auto& block = *blocks_.front();
  sealed_events_ -= block.events();
  strings_ -= block.strings();
  string_bytes_ -= block.string_bytes();
  if (!block.is_packed()) waiting_ -= block.memory();
  blocks_.pop_front();
}

// Called with mutex_ held. Keeps the last most_events_ within most_bytes_ of memory. A dump that is being written keeps
// the oldest blocks alive. It may use the last eighth of the memory for them; beyond that, it loses blocks.
void Window::make_room() {
  while (!blocks_.empty() && sealed_events_ - blocks_.front()->events() >= most_events_) drop_oldest();
  // Blocks contain their own strings, so together they have at least as many strings as a reader will see. Leave room
  // for the open block and for what is added to a dump.
  while (blocks_.size() > 1 && (strings_ > trace::kMostStrings - 8 * trace::kBlockEvents ||
                                string_bytes_ > trace::kMostStringBytes - 8 * trace::kBlockStringBytes)) {
    drop_oldest();
  }
  const std::uint64_t comfortable = most_bytes_ - most_bytes_ / 8;
  while (blocks_.size() > 1 && bytes() > comfortable && blocks_.front().use_count() == 1) drop_oldest();
  while (bytes() > most_bytes_) {
    std::shared_ptr<const Block> oldest;
    for (const auto& weak : snapshots_) {
      const auto snapshot = weak.lock();
      if (!snapshot) continue;
      const std::lock_guard lock(snapshot->mutex_);
      if (snapshot->blocks_.empty()) continue;
      oldest = std::move(snapshot->blocks_.front());
      snapshot->blocks_.pop_front();
      snapshot->missed_ += oldest->events() - std::exchange(snapshot->skip_, 0);
    }
    if (blocks_.size() > 1) {
      drop_oldest();
    } else if (!oldest) {
      break;
    }
  }
}

// The lock is held on entry and on return. Returns false if no block is waiting.
bool Window::pack_one(std::unique_lock<std::mutex>& lock) {
  // Choose the oldest block that is not being packed yet, so that blocks are packed in order.
  std::size_t seen = 0;
  std::shared_ptr<const Block> block;
  for (const auto& candidate : blocks_) {
    if (!candidate->is_packed() && seen++ == packing_) {
      block = candidate;
      break;
    }
  }
  if (!block) return false;
  ++packing_;
  lock.unlock();
  auto packed = block->pack(0);
  std::shared_ptr<const Block> better;
  if (packed) better = std::make_shared<const Block>(std::move(*packed), account_);
  lock.lock();
  --packing_;
  const auto at = std::find(blocks_.begin(), blocks_.end(), block);
  if (better && at != blocks_.end()) {
    waiting_ -= block->memory();
    strings_ += better->strings() - block->strings();
    *at = std::move(better);
  } else if (!better && at != blocks_.end()) {
    log::warning("{} events were lost: {}", block->events(), packed.error().message);
    waiting_ -= block->memory();
    sealed_events_ -= block->events();
    strings_ -= block->strings();
    string_bytes_ -= block->string_bytes();
    blocks_.erase(at);
  }
  done_.notify_all();
  return true;
}

void Window::run() {
  // Packing has lower priority than the traced system.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 5);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!pack_one(lock)) work_.wait(lock);
  }
}

void Window::settle() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return waiting_ == 0; });
}

std::size_t Window::snapshots() const {
  const std::lock_guard lock(mutex_);
  return snapshots_.size();
}

std::shared_ptr<Snapshot> Window::snapshot() {
  auto out = std::make_shared<Snapshot>();
  std::shared_ptr<const Block> open;
  if (!open_->events.empty()) open = std::make_shared<const Block>(std::make_unique<window::Raw>(*open_), account_);
  const std::lock_guard lock(mutex_);
  out->blocks_.assign(blocks_.begin(), blocks_.end());
  if (open) out->blocks_.push_back(std::move(open));
  const std::uint64_t held = sealed_events_ + open_->events.size();
  out->events_ = std::min(held, most_events_);
  // Skip the first events, because the window holds up to one block more than was configured.
  out->skip_ = held - out->events_;
  while (!out->blocks_.empty() && out->skip_ >= out->blocks_.front()->events()) {
    out->skip_ -= out->blocks_.front()->events();
    out->blocks_.pop_front();
  }
  std::erase_if(snapshots_, [](const auto& snapshot) { return snapshot.expired(); });
  snapshots_.push_back(out);
  return out;
}

}  // namespace rose::observe
