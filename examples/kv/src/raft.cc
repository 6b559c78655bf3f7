#include "raft.h"

#include <algorithm>
#include <charconv>

namespace kv {
namespace {

// Time is counted in ticks that this process really waited, so that a machine that was paused does not start elections.
constexpr Millis kTick{50};
constexpr Millis kHeartbeat{100};
constexpr int kElectionTicks = 20;      // a random number of up to half as many is added
constexpr int kFirstElectionTicks = 6;  // of the first node; the others wait longer, so that it wins
constexpr int kFirstElectionStep = 60;
constexpr Millis kPeerTimeout{2000};  // a session whose request is not answered is given up
constexpr Millis kDialTimeout{1000};
constexpr Millis kRedial{200};
constexpr std::size_t kBatchBytes = 64 * 1024;

enum class Op : std::uint8_t { put = 1, add = 2, swap = 3 };

std::int64_t to_number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string encode_put(std::string_view key, std::string_view value) {
  Writer out;
  out.u8(static_cast<std::uint8_t>(Op::put));
  out.string(key);
  out.string(value);
  return out.take();
}

std::string encode_add(std::string_view key, std::int64_t amount) {
  Writer out;
  out.u8(static_cast<std::uint8_t>(Op::add));
  out.string(key);
  out.u64(static_cast<std::uint64_t>(amount));
  return out.take();
}

std::string encode_swap(std::string_view key, std::string_view expected, std::string_view value) {
  Writer out;
  out.u8(static_cast<std::uint8_t>(Op::swap));
  out.string(key);
  out.string(expected);
  out.string(value);
  return out.take();
}

Raft::Raft(Options options) : options_(std::move(options)), random_(std::random_device{}()) {
  for (std::size_t i = 0; i < options_.cluster.size(); ++i) {
    const int id = static_cast<int>(i) + 1;
    if (id == options_.id) continue;
    auto peer = std::make_unique<Peer>();
    peer->id = id;
    peer->address = options_.cluster[i];
    peers_.push_back(std::move(peer));
  }
}

void Raft::start() {
  const void* bytes = nullptr;
  std::size_t size = 0;
  if (rose_rr_restore("raft", &bytes, &size) != 0) {
    restore({static_cast<const char*>(bytes), size});
  } else {
    recover();
    if (rr::on()) make_checkpoint();
  }
  started_ = true;
  ticker_ = std::thread([this] { tick_loop(); });
  snapshotter_ = std::thread([this] { snapshot_loop(); });
  if (rr::replaying()) return;  // messages of peers are in the recording
  for (const auto& peer : peers_) peer->thread = std::thread([this, &peer = *peer] { peer_loop(peer); });
}

void Raft::stop() {
  if (!started_) return;
  started_ = false;
  stop_.request();
  {
    const std::lock_guard lock(mutex_);
    work_.notify_all();
    applied_signal_.notify_all();
    snapshot_signal_.notify_all();
  }
  ticker_.join();
  snapshotter_.join();
  for (const auto& peer : peers_) peer->thread.join();

  const std::lock_guard lock(mutex_);
  log_.sync(log_.last());
  if (snapshot_index_ > log_.base()) log_.compact(snapshot_index_);
  info("stopped at entry %lu, log begins after %lu", log_.last(), log_.base());
}

void Raft::recover() {
  const std::lock_guard lock(mutex_);
  std::filesystem::create_directories(options_.data);
  ballot_ = read_ballot(options_.data / "ballot");
  snapshots_.open(options_.data / "snapshots");
  Snapshot snapshot = snapshots_.load();
  log_.open(options_.data / "log");
  if (log_.last() < snapshot.index) log_.reset(snapshot.index, snapshot.term);
  durable_ = log_.last();

  // Only the snapshot is applied now. The log's entries after it are applied once the leader reports that they are
  // committed.
  state_ = std::move(snapshot.state);
  snapshot_index_ = snapshot.index;
  applied_ = commit_ = log_.base();

  // At first, each node waits longer than the one before it, so that a new cluster does not begin with a split vote.
  timeout_ticks_ = kFirstElectionTicks + (options_.id - 1) * kFirstElectionStep;
  info("recovered: term %lu, snapshot of entry %lu, log %lu to %lu", ballot_.term, snapshot_index_, log_.base() + 1,
       log_.last());
}

// ---- Elections ------------------------------------------------------------------------------------

void Raft::tick_loop() {
  while (!stop_.wait(rr::replaying() ? Millis(0) : kTick)) {
    {
      std::unique_lock lock(mutex_, std::defer_lock);
      enter(lock, "tick");
      if (role_ == Role::leader) {
        sync_log(lock, "tick");
        advance_commit();
      } else if (syncing_ == 0 && ++quiet_ticks_ >= timeout_ticks_) {
        // A tick counts as silence only if no entry of the leader is being synced: otherwise this node is just slow.
        start_election();
      }
    }
    if (rose_rr_checkpoint_due("raft") != 0) make_checkpoint();
  }
}

void Raft::reset_timer() {
  quiet_ticks_ = 0;
  timeout_ticks_ = kElectionTicks + static_cast<int>(random_() % (kElectionTicks / 2));
}

void Raft::start_election() {
  role_ = Role::candidate;
  leader_ = 0;
  votes_ = 1;
  ballot_ = {ballot_.term + 1, options_.id};
  write_ballot(options_.data / "ballot", ballot_);
  reset_timer();
  info("no leader heard, asking for votes in term %lu", ballot_.term);
  if (votes_ > static_cast<int>(options_.cluster.size()) / 2) become_leader();
  work_.notify_all();
}

void Raft::become_leader() {
  role_ = Role::leader;
  leader_ = options_.id;
  for (const auto& peer : peers_) {
    peer->next = log_.last() + 1;
    peer->match = 0;
    peer->wants_snapshot = false;
  }
  // Entries of earlier terms are committed only together with one of this term.
  log_.append({log_.last() + 1, ballot_.term, ""});
  info("leader of term %lu, log ends at %lu", ballot_.term, log_.last());
  work_.notify_all();
}

void Raft::follow(Term term, int leader) {
  if (term > ballot_.term) {
    ballot_ = {term, 0};
    write_ballot(options_.data / "ballot", ballot_);
  }
  if (role_ == Role::leader) info("steps down, term %lu has begun", term);
  if (leader != 0 && leader != leader_) info("follows n%d in term %lu", leader, term);
  if (role_ != Role::follower) reset_timer();
  role_ = Role::follower;
  leader_ = leader;
  applied_signal_.notify_all();  // wakes clients: this node can no longer commit their entries
}

Reply Raft::serve_vote(const VoteRequest& request, const std::string& caller) {
  std::unique_lock lock(mutex_, std::defer_lock);
  enter(lock, record_key("vote:", caller));
  if (request.term > ballot_.term) follow(request.term, 0);
  Reply reply{ballot_.term, false, false, 0};
  if (request.term < ballot_.term) return reply;
  const bool up_to_date = request.last_term > log_.last_term() ||
                          (request.last_term == log_.last_term() && request.last_index >= log_.last());
  if (!up_to_date || (ballot_.voted_for != 0 && ballot_.voted_for != request.candidate)) return reply;
  if (ballot_.voted_for == 0) {
    ballot_.voted_for = request.candidate;
    write_ballot(options_.data / "ballot", ballot_);
  }
  reset_timer();
  reply.ok = true;
  return reply;
}

// ---- Replication: the leader's side ---------------------------------------------------------------

void Raft::peer_loop(Peer& peer) {
  Connection session;
  while (!stop_.requested()) {
    if (!session.open()) {
      session = Connection::dial(peer.address, kPeerPort, kDialTimeout, stop_);
      if (!session.open()) {
        stop_.wait(kRedial);
        continue;
      }
    }
    const Request request = next_request(peer);
    if (stop_.requested()) return;
    std::optional<Connection::Frame> frame;
    if (!session.stale() &&
        session.send_frame(static_cast<std::uint8_t>(request.kind), request.body, kPeerTimeout, stop_)) {
      frame = session.read_frame(kPeerTimeout, stop_);
    }
    const std::optional<Reply> reply = frame ? Reply::decode(frame->body) : std::nullopt;
    take_reply(peer, request, reply);
    if (!reply) session.close();
    // A peer that could not store the snapshot is unlikely to succeed immediately, so wait before the next attempt.
    if (reply && !reply->ok && request.kind == Kind::snapshot) stop_.wait(kRedial);
  }
}

// The next request for the peer; waits up to a heartbeat's time for something new.
Raft::Request Raft::next_request(Peer& peer) {
  std::unique_lock lock(mutex_);
  work_.wait_for(lock, kHeartbeat, [&] {
    if (stop_.requested()) return true;
    if (role_ == Role::candidate) return peer.voted_in < ballot_.term;
    return role_ == Role::leader && (peer.next <= log_.last() || peer.wants_snapshot);
  });

  if (role_ == Role::candidate && peer.voted_in < ballot_.term) {
    const VoteRequest vote{ballot_.term, options_.id, log_.last(), log_.last_term()};
    return {Kind::vote, ballot_.term, vote.encode()};
  }
  if (role_ != Role::leader) return {Kind::ping, ballot_.term, ""};
  if (peer.wants_snapshot || peer.next <= log_.base()) {
    const Snapshot now{applied_, log_.term_at(applied_), state_};
    info("sends n%d the state as of entry %lu", peer.id, applied_);
    return {Kind::snapshot, ballot_.term, SnapshotRequest{ballot_.term, options_.id, now.encode()}.encode()};
  }
  AppendRequest append{ballot_.term, options_.id, peer.next - 1, log_.term_at(peer.next - 1), commit_, {}};
  append.entries = log_.read(peer.next, kBatchBytes);
  return {Kind::append, ballot_.term, append.encode()};
}

void Raft::take_reply(Peer& peer, const Request& request, const std::optional<Reply>& reply) {
  const std::string key = record_key("reply/", rr::on() ? std::to_string(peer.id) : "");
  rose_rr_lock(key.c_str());
  const std::lock_guard lock(mutex_);
  if (rr::on()) {
    std::string bytes = encode_recorded_reply(request.kind, request.term, reply);
    rr::record(key.c_str(), bytes);
  }
  set_connected(peer, reply.has_value());
  if (reply) handle_reply(peer, request, *reply);
}

void Raft::handle_reply(Peer& peer, const Request& request, const Reply& reply) {
  if (reply.term > ballot_.term) {
    follow(reply.term, 0);
    return;
  }
  if (request.term != ballot_.term) return;  // the reply to a request of an earlier term
  if (request.kind == Kind::vote && role_ == Role::candidate) {
    peer.voted_in = ballot_.term;
    if (reply.ok && ++votes_ > static_cast<int>(options_.cluster.size()) / 2) become_leader();
  } else if ((request.kind == Kind::append || request.kind == Kind::snapshot) && role_ == Role::leader) {
    peer.wants_snapshot = reply.wants_snapshot;
    if (reply.ok) {
      peer.match = std::max(peer.match, reply.match);
      peer.next = peer.match + 1;
      advance_commit();
    } else {
      peer.next = std::max<Index>(1, std::min(peer.next - 1, reply.match + 1));
    }
  }
}

void Raft::set_connected(Peer& peer, bool connected) {
  if (peer.connected != connected && !stop_.requested()) {
    info(connected ? "session with n%d" : "no session with n%d", peer.id);
  }
  peer.connected = connected;
}

// Commits what a majority has stored.
void Raft::advance_commit() {
  if (role_ != Role::leader) return;
  std::vector<Index> stored = {durable_};
  for (const auto& peer : peers_) {
    if (peer->connected) stored.push_back(peer->match);
  }
  std::sort(stored.begin(), stored.end(), std::greater<>());
  const Index majority = stored[stored.size() / 2];
  if (majority > commit_ && log_.term_at(majority) == ballot_.term) {
    commit_ = majority;
    apply_committed();
    work_.notify_all();
  }
}

// ---- Replication: the follower's side -------------------------------------------------------------

std::optional<std::string> Raft::serve(Kind kind, std::string_view body, const std::string& caller) {
  switch (kind) {
    case Kind::ping: {
      const std::lock_guard lock(mutex_);
      return Reply{ballot_.term, true, false, 0}.encode();
    }
    case Kind::vote:
      if (const auto request = VoteRequest::decode(body)) return serve_vote(*request, caller).encode();
      break;
    case Kind::append:
      if (const auto request = AppendRequest::decode(body)) return serve_append(*request, caller).encode();
      break;
    case Kind::snapshot:
      if (const auto request = SnapshotRequest::decode(body)) return serve_snapshot(*request, caller).encode();
      break;
  }
  warning("a peer sent a request that makes no sense");
  return std::nullopt;
}

Reply Raft::serve_append(const AppendRequest& request, const std::string& caller) {
  std::unique_lock lock(mutex_, std::defer_lock);
  enter(lock, record_key("append:", caller));
  if (request.term < ballot_.term) return {ballot_.term, false, false, log_.last()};
  if (request.term > ballot_.term || role_ != Role::follower || leader_ != request.leader) {
    follow(request.term, request.leader);
  }
  reset_timer();

  Reply reply{ballot_.term, false, false, log_.last()};
  if (request.previous_index > log_.last()) return reply;
  if (request.previous_index > log_.base() && log_.term_at(request.previous_index) != request.previous_term) {
    reply.match = request.previous_index - 1;
    // Applied entries cannot be reverted one by one, so a snapshot must replace them.
    reply.wants_snapshot = request.previous_index <= applied_;
    return reply;
  }
  for (const Entry& entry : request.entries) {
    if (entry.index <= log_.base()) continue;
    if (entry.index <= log_.last()) {
      if (log_.term_at(entry.index) == entry.term) continue;
      if (entry.index <= applied_) {
        reply.match = entry.index - 1;
        reply.wants_snapshot = true;
        return reply;
      }
      info("drops entries %lu to %lu of an earlier leader", entry.index, log_.last());
      log_.truncate(entry.index);
      durable_ = std::min(durable_, log_.last());
    }
    log_.append(entry);
  }

  const Index last = request.previous_index + request.entries.size();
  sync_log(lock, caller);
  if (ballot_.term != request.term) return {ballot_.term, false, false, log_.last()};
  reset_timer();
  commit_ = std::max(commit_, std::min(request.commit, last));
  apply_committed();
  reply.ok = true;
  reply.match = last;
  return reply;
}

Reply Raft::serve_snapshot(const SnapshotRequest& request, const std::string& caller) {
  std::optional<Snapshot> snapshot = Snapshot::decode(request.snapshot);
  std::unique_lock lock(mutex_, std::defer_lock);
  enter(lock, record_key("install:", caller));
  if (request.term < ballot_.term || !snapshot) return {ballot_.term, false, false, log_.last()};
  follow(request.term, request.leader);
  reset_timer();
  const Status done = snapshots_.save(*snapshot);
  bool saved = static_cast<bool>(done);
  rr::record(record_key("installed:", caller).c_str(), saved);
  if (!saved) {
    warning("the leader's snapshot of entry %lu was not saved: %s", snapshot->index, done.message().c_str());
    return {ballot_.term, false, true, log_.last()};
  }
  log_.reset(snapshot->index, snapshot->term);
  if (rr::on()) history_ = crc32(request.snapshot);
  state_ = std::move(snapshot->state);
  durable_ = commit_ = applied_ = snapshot_index_ = snapshot->index;
  reset_timer();
  info("installed the leader's state as of entry %lu", applied_);
  return {ballot_.term, true, false, applied_};
}

// ---- Log, state and snapshots ---------------------------------------------------------------------

// Waits until the log is on the disk. The lock is released meanwhile, so that other threads can continue.
void Raft::sync_log(std::unique_lock<std::mutex>& lock, const std::string& caller) {
  const Index last = log_.last();
  if (durable_ >= last) return;
  const Term term = ballot_.term;
  ++syncing_;
  lock.unlock();
  Index durable = log_.sync(last);
  const std::string key = record_key("synced:", caller);
  rose_rr_lock(key.c_str());
  lock.lock();
  rr::record(key.c_str(), durable);
  --syncing_;
  // If the term has changed, those entries may have been replaced. The thread that replaced them syncs the new ones.
  if (ballot_.term == term) durable_ = std::max(durable_, std::min(durable, log_.last()));
}

void Raft::apply_committed() {
  if (applied_ >= commit_) return;
  while (applied_ < commit_) {
    const Entry& entry = log_.at(++applied_);
    std::string value = apply(entry);
    const auto waiter = waiters_.find(entry.index);
    if (waiter != waiters_.end() && waiter->second->term == entry.term) {
      waiter->second->done = true;
      waiter->second->value = std::move(value);
    }
  }
  applied_signal_.notify_all();
  snapshot_signal_.notify_all();
}

std::string Raft::apply(const Entry& entry) {
  if (rr::on()) history_ = history_ * 1099511628211U + crc32(entry.command) + entry.term;
  if (entry.command.empty()) return {};
  Reader in(entry.command);
  const Op op = static_cast<Op>(in.u8());
  const std::string key = in.string();
  std::string& value = state_[key];
  if (op == Op::put) {
    value = in.string();
  } else if (op == Op::swap) {
    const std::string expected = in.string();
    if (value != expected) {
      broken("entry %lu puts another value in the place of '%s' in '%s', which holds '%s'", entry.index,
             expected.c_str(), key.c_str(), value.c_str());
    }
    value = in.string();
  } else {
    value = std::to_string(to_number(value) + static_cast<std::int64_t>(in.u64()));
  }
  return value;
}

// Takes a snapshot every `snapshot_every` entries, and drops the entries that it covers from the log.
void Raft::snapshot_loop() {
  std::unique_lock lock(mutex_);
  while (wait_for_snapshot(lock)) {
    const Snapshot snapshot{applied_, log_.term_at(applied_), state_};
    lock.unlock();
    const Status done = snapshots_.save(snapshot);
    bool saved = static_cast<bool>(done);
    rose_rr_lock("snapshot saved");
    lock.lock();
    rr::record("snapshot saved", saved);
    // Counts as taken even if saving failed: otherwise a full disk would make every further entry try again.
    snapshot_index_ = std::max(snapshot_index_, snapshot.index);
    if (saved) {
      info("snapshot of entry %lu saved", snapshot.index);
    } else {
      warning("snapshot of entry %lu not saved: %s; next try in %lu entries", snapshot.index, done.message().c_str(),
              options_.snapshot_every);
    }
    // Dropping entries rewrites the log's file, so it is done only for `compact_after` entries at once; stop() drops
    // the rest.
    if (snapshot_index_ >= log_.base() + options_.compact_after) log_.compact(snapshot_index_);
    gate_.leave();
  }
}

// Waits until a snapshot is due, and returns with the gate entered; false if the node stops instead.
bool Raft::wait_for_snapshot(std::unique_lock<std::mutex>& lock) {
  while (true) {
    if (rr::replaying()) {
      // The snapshot must be taken at the recorded position, not as soon as possible, because its content depends on
      // the position.
      lock.unlock();
      enter(lock, "snapshot");
      return true;
    }
    const auto due = [&] { return stop_.requested() || applied_ >= snapshot_index_ + options_.snapshot_every; };
    snapshot_signal_.wait(lock, due);
    if (stop_.requested()) return false;
    if (!rr::on()) return true;
    lock.unlock();
    gate_.enter();
    lock.lock();
    if (!stop_.requested() && due()) {
      rr::compare("snapshot", progress());
      return true;
    }
    lock.unlock();
    gate_.leave();
    lock.lock();
  }
}

// ---- Clients --------------------------------------------------------------------------------------

// The answer is certain once an entry of this leader's term is applied. All entries of earlier leaders are then
// applied, too, and all pending entries come later in the log.
bool Raft::holds(const std::string& key, const std::string& value, const std::string& caller) {
  std::unique_lock lock(mutex_, std::defer_lock);
  enter(lock, record_key("holds:", caller));
  if (role_ != Role::leader || log_.term_at(applied_) != ballot_.term) return false;
  for (Index index = applied_ + 1; index <= log_.last(); ++index) {
    Reader in(log_.at(index).command);
    in.u8();
    if (in.view() == key) return false;
  }
  const auto it = state_.find(key);
  return (it == state_.end() ? "" : it->second) == value;
}

Outcome Raft::propose(const std::string& command, Millis timeout, const std::string& caller) {
  std::unique_lock lock(mutex_, std::defer_lock);
  const Gate::Pass pass(gate_);
  enter(lock, record_key("propose:", caller));
  if (role_ != Role::leader) return {Outcome::Kind::not_leader, "", leader_};
  const Term term = ballot_.term;
  const Index index = log_.last() + 1;
  log_.append({index, term, command});
  Waiter waiter{term, false, ""};
  waiters_[index] = &waiter;
  work_.notify_all();
  sync_log(lock, caller);
  advance_commit();
  gate_.leave();
  applied_signal_.wait_for(
      lock, timeout, [&] { return waiter.done || stop_.requested() || role_ != Role::leader || ballot_.term != term; });
  // Another leader may have put its own entry, with another client's waiter, at this index.
  if (const auto it = waiters_.find(index); it != waiters_.end() && it->second == &waiter) waiters_.erase(it);
  if (!waiter.done) return {Outcome::Kind::unknown, "", leader_};
  return {Outcome::Kind::done, waiter.value, leader_};
}

std::optional<std::string> Raft::read(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = state_.find(key);
  if (it == state_.end()) return std::nullopt;
  return it->second;
}

State Raft::scan() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

Report Raft::report() const {
  const std::lock_guard lock(mutex_);
  return {options_.id, role_, leader_, ballot_.term, log_.last(), commit_, applied_, log_.base(), snapshot_index_};
}

}  // namespace kv
