#include "observe/window.h"

#include <algorithm>
#include <bit>

namespace rose::observe {
namespace {

// What a text costs beside its bytes: the entry, the map's node and bucket, two allocations.
constexpr std::uint64_t kTextOverhead = 128;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 33);
}

}  // namespace

std::uint32_t Texts::take(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) {
    ++entries_[found->second].users;
    return found->second;
  }
  std::uint32_t id = 0;
  if (free_.empty()) {
    id = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  entries_[id].text.assign(text);
  entries_[id].users = 1;
  ids_.emplace(entries_[id].text, id);
  bytes_ += text.size() + kTextOverhead;
  return id;
}

void Texts::release(std::uint32_t id) {
  if (id == 0) return;
  auto& entry = entries_[id];
  if (--entry.users != 0) return;
  bytes_ -= entry.text.size() + kTextOverhead;
  ids_.erase(entry.text);
  entry.text = std::string();
  free_.push_back(id);
}

std::vector<std::string> Texts::copy() const {
  std::vector<std::string> texts;
  texts.reserve(entries_.size());
  for (const auto& entry : entries_) texts.push_back(entry.text);
  return texts;
}

Window::Window(std::uint64_t most_events, std::uint64_t most_bytes)
    : most_events_(std::max<std::uint64_t>(most_events, 1)), most_bytes_(most_bytes) {
  // Storms are looked for in a table of a fixed size: two that meet in a place only collapse less.
  storms_.resize(std::bit_floor(std::clamp<std::uint64_t>(most_bytes / 64 / sizeof(Storm), 64, 8192)));
  most_events_ = std::min(most_events_, std::max<std::uint64_t>(most_bytes / sizeof(Slot), kChunk));
  chunks_.resize((most_events_ + kChunk - 1) / kChunk + 1);
}

std::uint64_t Window::bytes() const {
  return allocated_ + texts_.bytes() + storms_.size() * sizeof(Storm) + chunks_.size() * sizeof(chunks_[0]);
}

void Window::drop_oldest() {
  const Slot& slot = at(tail_);
  for (const auto text : slot.text) texts_.release(text);
  ++tail_;
  ++overwritten_;
  if (tail_ % kChunk == 0 && head_ / kChunk != (tail_ - 1) / kChunk) {
    chunks_[((tail_ - 1) / kChunk) % chunks_.size()].reset();
    allocated_ -= kChunk * sizeof(Slot);
  }
}

std::uint64_t Window::store(const Slot& slot) {
  while (size() >= most_events_) drop_oldest();
  auto& chunk = chunks_[(head_ / kChunk) % chunks_.size()];
  if (!chunk) {
    chunk = std::make_unique<std::vector<Slot>>(kChunk);
    allocated_ += kChunk * sizeof(Slot);
  }
  at(head_) = slot;
  ++head_;
  while (size() > 1 && bytes() > most_bytes_) drop_oldest();
  return head_ - 1;
}

bool Window::collapse(Storm& storm, const Slot& slot) {
  if (storm.slot == UINT64_MAX || storm.slot < tail_) return false;
  Slot& into = at(storm.slot);
  // The place may be another storm's by now.
  if (into.type != slot.type || into.node != slot.node || into.syscall != slot.syscall || into.err != slot.err ||
      !std::equal(std::begin(into.text), std::end(into.text), std::begin(slot.text)) || into.count == UINT32_MAX) {
    return false;
  }
  ++into.count;
  into.ts_ns = std::max(into.ts_ns, slot.ts_ns);
  for (const auto text : slot.text) texts_.release(text);
  return true;
}

void Window::add(const Decoded& decoded) {
  const auto& event = decoded.event;
  Slot slot;
  slot.ts_ns = event.ts_ns;
  slot.pid = event.pid;
  slot.tid = event.tid;
  slot.node = static_cast<std::uint8_t>(decoded.node);
  slot.type = event.type;
  slot.flags = static_cast<std::uint8_t>(event.flags);
  slot.syscall = event.syscall;
  slot.err = event.err;
  switch (event.type) {
    case trace::EventType::scf:
    case trace::EventType::sys:
      if (decoded.has_path) slot.text[0] = texts_.take(decoded.path);
      if (decoded.has_path2) slot.text[1] = texts_.take(decoded.path2);
      if (decoded.has_peer) slot.text[2] = texts_.take(decoded.peer);
      slot.a = event.fd;
      slot.b = static_cast<std::int32_t>(event.result);
      break;
    case trace::EventType::af:
      slot.a = static_cast<std::int32_t>(decoded.function);
      break;
    case trace::EventType::nd:
      slot.text[0] = texts_.take(decoded.src);
      slot.text[1] = texts_.take(decoded.dst);
      slot.a = event.duration_ms;
      slot.b = static_cast<std::int32_t>((std::uint32_t{event.sport} << 16) | event.dport);
      slot.count = event.packets;
      slot.kind = static_cast<std::uint8_t>(event.protocol);
      break;
    case trace::EventType::ps:
      slot.a = event.duration_ms;
      slot.b = event.exit_code;
      slot.err = event.signal;
      slot.kind = static_cast<std::uint8_t>(event.state);
      break;
  }
  if (event.type != trace::EventType::scf && event.type != trace::EventType::sys) {
    (void)store(slot);
    return;
  }

  std::uint64_t key = mix(0, static_cast<std::uint64_t>(slot.type) << 32 | std::uint64_t{slot.node} << 40 |
                                 static_cast<std::uint16_t>(slot.syscall) << 16 |
                                 static_cast<std::uint16_t>(slot.err));
  for (const auto text : slot.text) key = mix(key, text);
  Storm& storm = storms_[key & (storms_.size() - 1)];
  if (storm.key != key || slot.ts_ns - storm.last_ns > kStormSpan) {
    storm = {key, slot.ts_ns, slot.ts_ns, UINT64_MAX, 1};
    (void)store(slot);
    return;
  }
  storm.last_ns = std::max(storm.last_ns, slot.ts_ns);
  if (slot.ts_ns - storm.begin_ns > kStormSpan) {
    // A storm that goes on has one record a second; what was none begins anew.
    storm.begin_ns = slot.ts_ns;
    storm.seen = storm.seen > kStorm ? kStorm : 0;
    storm.slot = UINT64_MAX;
  }
  ++storm.seen;
  if (storm.seen > kStorm && collapse(storm, slot)) return;
  const auto index = store(slot);
  if (storm.seen > kStorm) storm.slot = index;
}

Window::Copy Window::copy() const {
  Copy out;
  out.slots.reserve(size());
  for (std::uint64_t i = tail_; i < head_; ++i) out.slots.push_back(at(i));
  out.texts = texts_.copy();
  return out;
}

trace::Event unpack(const Slot& slot) {
  trace::Event event;
  event.ts_ns = slot.ts_ns;
  event.pid = slot.pid;
  event.tid = slot.tid;
  event.type = slot.type;
  event.flags = slot.flags;
  event.syscall = slot.syscall;
  switch (slot.type) {
    case trace::EventType::scf:
    case trace::EventType::sys:
      event.path = slot.text[0];
      event.path2 = slot.text[1];
      event.peer = slot.text[2];
      event.fd = slot.a;
      event.result = slot.b;
      event.err = slot.err;
      event.count = slot.count;
      break;
    case trace::EventType::af:
      break;
    case trace::EventType::nd:
      event.src = slot.text[0];
      event.dst = slot.text[1];
      event.duration_ms = slot.a;
      event.sport = static_cast<std::uint16_t>(static_cast<std::uint32_t>(slot.b) >> 16);
      event.dport = static_cast<std::uint16_t>(slot.b);
      event.packets = slot.count;
      event.protocol = static_cast<trace::Protocol>(slot.kind);
      break;
    case trace::EventType::ps:
      event.duration_ms = slot.a;
      event.exit_code = slot.b;
      event.signal = static_cast<std::uint8_t>(slot.err);
      event.state = static_cast<trace::ProcessState>(slot.kind);
      break;
  }
  return event;
}

}  // namespace rose::observe
