// Messages between nodes: a request and its reply, each in one frame.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base.h"
#include "log.h"

namespace kv {

// A ping has no body. It shows that an idle session is still alive.
enum class Kind : std::uint8_t { ping = 1, vote = 2, append = 3, snapshot = 4 };

struct VoteRequest {
  Term term = 0;
  int candidate = 0;
  Index last_index = 0;
  Term last_term = 0;

  std::string encode() const;
  static std::optional<VoteRequest> decode(std::string_view bytes);
};

// Without entries, this is the heartbeat.
struct AppendRequest {
  Term term = 0;
  int leader = 0;
  Index previous_index = 0;
  Term previous_term = 0;
  Index commit = 0;
  std::vector<Entry> entries;

  std::string encode() const;
  static std::optional<AppendRequest> decode(std::string_view bytes);
};

struct SnapshotRequest {
  Term term = 0;
  int leader = 0;
  std::string snapshot;  // Snapshot::encode()

  std::string encode() const;
  static std::optional<SnapshotRequest> decode(std::string_view bytes);
};

// One form for all replies.
struct Reply {
  Term term = 0;
  bool ok = false;              // vote granted, entries stored, snapshot installed
  bool wants_snapshot = false;  // append: the peer needs a snapshot instead of entries
  Index match = 0;              // append, snapshot: stored up to here; refused: the last index that may still match

  std::string encode() const;
  static std::optional<Reply> decode(std::string_view bytes);
};

}  // namespace kv
