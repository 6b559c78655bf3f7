// Raft's part of what record.h describes.
#include <atomic>
#include <sstream>

#include "raft.h"

namespace kv {
namespace {

thread_local bool inside_gate = false;

}  // namespace

std::string numbered_caller(const char* kind) {
  static std::atomic<int> connections = 0;
  return rr::on() ? kind + std::to_string(++connections) : std::string();
}

void Gate::enter() {
  if (inside_gate || !rr::on() || rr::replaying()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !closed_; });
  ++inside_;
  inside_gate = true;
}

void Gate::leave() {
  if (!inside_gate) return;
  const std::lock_guard lock(mutex_);
  inside_gate = false;
  if (--inside_ == 0) changed_.notify_all();
}

void Gate::close() {
  if (rr::replaying()) return;
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.wait(lock, [&] { return inside_ == 0; });
}

void Gate::open() {
  if (rr::replaying()) return;
  const std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

void Raft::make_checkpoint() {
  gate_.close();
  {
    rose_rr_lock("raft");
    const std::lock_guard lock(mutex_);
    const std::string state = recorded_state();
    rose_rr_checkpoint("raft", state.data(), state.size());
  }
  gate_.open();
}

std::string Raft::progress() const {
  Writer out;
  out.u64(applied_);
  out.u64(history_);
  return out.take();
}

void Raft::enter(std::unique_lock<std::mutex>& lock, const std::string& key) {
  rose_rr_lock(key.c_str());
  lock.lock();
  if (rr::on()) rr::compare(key.c_str(), progress());
}

std::string Raft::recorded_state() {
  Writer out;
  out.u64(ballot_.term);
  out.u32(static_cast<std::uint32_t>(ballot_.voted_for));
  out.u8(static_cast<std::uint8_t>(role_));
  for (const int number : {leader_, votes_, quiet_ticks_, timeout_ticks_}) out.u32(static_cast<std::uint32_t>(number));
  std::ostringstream random;
  random << random_;
  out.string(random.str());
  for (const auto& peer : peers_) {
    out.u8(static_cast<std::uint8_t>((peer->connected ? 1 : 0) + (peer->wants_snapshot ? 2 : 0)));
    for (const std::uint64_t number : {peer->next, peer->match, peer->voted_in}) out.u64(number);
  }
  for (const std::uint64_t number :
       {log_.base(), log_.term_at(log_.base()), log_.last(), durable_, commit_, applied_, snapshot_index_, history_})
    out.u64(number);
  for (const Entry& entry : log_.read(log_.base() + 1, SIZE_MAX)) {
    out.u64(entry.term);
    out.string(entry.command);
  }
  for (const auto& [key, value] : state_) {
    out.string(key);
    out.string(value);
  }
  return out.take();
}

void Raft::restore(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  Reader in(bytes);
  ballot_.term = in.u64();
  ballot_.voted_for = static_cast<int>(in.u32());
  role_ = static_cast<Role>(in.u8());
  for (int* number : {&leader_, &votes_, &quiet_ticks_, &timeout_ticks_}) *number = static_cast<int>(in.u32());
  std::istringstream random(in.string());
  random >> random_;
  for (const auto& peer : peers_) {
    const int flags = in.u8();
    peer->connected = (flags & 1) != 0;
    peer->wants_snapshot = (flags & 2) != 0;
    for (std::uint64_t* number : {&peer->next, &peer->match, &peer->voted_in}) *number = in.u64();
  }
  const Index base = in.u64();
  const Term base_term = in.u64();
  const Index last = in.u64();
  for (std::uint64_t* number : {&durable_, &commit_, &applied_, &snapshot_index_, &history_}) *number = in.u64();
  std::vector<Entry> entries;
  for (Index index = base + 1; index <= last && in.good(); ++index) {
    const Term term = in.u64();
    entries.push_back({index, term, in.string()});
  }
  while (in.good() && in.left() != 0) {
    std::string key = in.string();
    state_.insert_or_assign(std::move(key), in.string());
  }
  if (!in.good()) fatal("the recording's checkpoint is of another version of this program");

  std::filesystem::create_directories(options_.data);
  write_ballot(options_.data / "ballot", ballot_);
  snapshots_.open(options_.data / "snapshots");
  log_.restore(options_.data / "log", base, base_term, entries);
  info("replays from entry %lu on, log %lu to %lu", applied_, log_.base() + 1, log_.last());
}

std::string encode_recorded_reply(Kind kind, Term term, const std::optional<Reply>& reply) {
  Writer out;
  out.u8(static_cast<std::uint8_t>(kind));
  out.u64(term);
  return out.take() + (reply ? reply->encode() : "");
}

void Raft::take_recorded_reply(std::string_view key, std::string_view bytes) {
  Reader in(bytes);
  Request request;
  request.kind = static_cast<Kind>(in.u8());
  request.term = in.u64();
  for (const auto& peer : peers_) {
    if (key != "reply/" + std::to_string(peer->id)) continue;
    take_reply(*peer, request, in.left() == 0 ? std::nullopt : Reply::decode(bytes.substr(bytes.size() - in.left())));
  }
}

}  // namespace kv
