// Consensus: the leader, the log, the commit position, and the state that follows from them. After "In Search of an
// Understandable Consensus Algorithm" (Ongaro, Ousterhout).
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base.h"
#include "log.h"
#include "net.h"
#include "record.h"
#include "snapshot.h"
#include "storage.h"
#include "wire.h"

namespace kv {

inline constexpr std::uint16_t kClientPort = 7000;
inline constexpr std::uint16_t kPeerPort = 7001;

struct Options {
  int id = 0;                        // 1, 2, ...: the position in `cluster`
  std::vector<std::string> cluster;  // addresses of all nodes, including this one
  std::filesystem::path data;
  Index snapshot_every = 1000;  // entries
  Index compact_after = 20000;  // entries that a snapshot covers before the log is rewritten without them
};

enum class Role { follower, candidate, leader };

struct Outcome {
  enum class Kind { done, not_leader, unknown };  // unknown: it may still be executed, or never
  Kind kind = Kind::unknown;
  std::string value;  // done: the command's result
  int leader = 0;     // with not_leader: the node that may be the leader; 0 if unknown
};

struct Report {
  int id = 0;
  Role role = Role::follower;
  int leader = 0;
  Term term = 0;
  Index last = 0, commit = 0, applied = 0, base = 0, snapshot = 0;
};

class Raft {
 public:
  explicit Raft(Options options);
  ~Raft() { stop(); }

  // Reads what the previous process left, then takes part.
  void start();
  // Stops in an orderly way: memory is written to disk, and the log is shortened for the next start.
  void stop();

  // For clients. The command is agreed on and applied, and its result is returned. `caller` names the client that waits
  // for the result, see record.h.
  Outcome propose(const std::string& command, Millis timeout, const std::string& caller = {});
  // Whether `key` has this value as far as this leader knows, with nothing pending that would change it.
  bool holds(const std::string& key, const std::string& value, const std::string& caller = {});
  // These read this node's own state, whatever its role.
  std::optional<std::string> read(const std::string& key) const;
  State scan() const;
  Report report() const;

  // For peers: the reply to one request; nothing if it is malformed.
  std::optional<std::string> serve(Kind kind, std::string_view body, const std::string& caller = {});

  // Used only in a replay: takes the recorded answer of a peer, see record.h.
  void take_recorded_reply(std::string_view key, std::string_view bytes);
  // A thread that handles a message stays inside the gate until it has written its last record.
  Gate& gate() { return gate_; }

 private:
  struct Peer {
    int id = 0;
    std::string address;
    bool connected = false;  // it answered, and the session has not broken since
    Index next = 1;          // the entry to send next
    Index match = 0;         // it has stored everything up to here
    bool wants_snapshot = false;
    Term voted_in = 0;  // asked for its vote in this term
    std::thread thread;
  };
  struct Request {
    Kind kind = Kind::ping;
    Term term = 0;
    std::string body;
  };
  struct Waiter {
    Term term = 0;
    bool done = false;
    std::string value;
  };

  void recover();
  // raft_record.cc: everything that a replay needs to continue from here.
  std::string recorded_state();
  std::string progress() const;
  // Locks the mutex, in a replay in the recorded order, and compares progress() with the recorded one.
  void enter(std::unique_lock<std::mutex>& lock, const std::string& key);
  void restore(std::string_view bytes);
  void make_checkpoint();

  // Elections.
  void tick_loop();
  void start_election();
  void become_leader();
  void follow(Term term, int leader);
  void reset_timer();
  Reply serve_vote(const VoteRequest& request, const std::string& caller);

  // Replication, leader's side: one thread per peer.
  void peer_loop(Peer& peer);
  Request next_request(Peer& peer);
  // `reply` has no value if no reply came.
  void take_reply(Peer& peer, const Request& request, const std::optional<Reply>& reply);
  void handle_reply(Peer& peer, const Request& request, const Reply& reply);
  void set_connected(Peer& peer, bool connected);
  void advance_commit();
  // Follower's side.
  Reply serve_append(const AppendRequest& request, const std::string& caller);
  Reply serve_snapshot(const SnapshotRequest& request, const std::string& caller);

  void sync_log(std::unique_lock<std::mutex>& lock, const std::string& caller);
  void apply_committed();
  std::string apply(const Entry& entry);
  void snapshot_loop();
  bool wait_for_snapshot(std::unique_lock<std::mutex>& lock);

  const Options options_;
  Stop stop_;
  mutable std::mutex mutex_;      // guards everything below
  std::condition_variable work_;  // for peer threads: something to send
  std::condition_variable applied_signal_;
  std::condition_variable snapshot_signal_;

  Role role_ = Role::follower;
  Ballot ballot_;  // contains the current term
  int leader_ = 0;
  int votes_ = 0;
  int quiet_ticks_ = 0;    // ticks since the leader's last message
  int timeout_ticks_ = 0;  // after this many quiet ticks an election begins
  int syncing_ = 0;        // requests of the leader that wait for our disk
  std::mt19937 random_;
  std::vector<std::unique_ptr<Peer>> peers_;

  Log log_;
  Index durable_ = 0;
  Index commit_ = 0;
  Index applied_ = 0;
  State state_;
  std::map<Index, Waiter*> waiters_;

  SnapshotStore snapshots_;
  Index snapshot_index_ = 0;

  std::uint64_t history_ = 0;  // a hash of everything that was applied; kept only while recording and replaying
  Gate gate_;

  std::thread ticker_;
  std::thread snapshotter_;
  bool started_ = false;
};

// raft_record.cc: the outcome of a request to a peer, as stored under "reply/N".
std::string encode_recorded_reply(Kind kind, Term term, const std::optional<Reply>& reply);

// Commands in the log's form.
std::string encode_put(std::string_view key, std::string_view value);
std::string encode_add(std::string_view key, std::int64_t amount);
// Replaces `expected` by `value`.
std::string encode_swap(std::string_view key, std::string_view expected, std::string_view value);

}  // namespace kv
