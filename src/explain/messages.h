// Messages between nodes in one run: which bytes one node sent, which thread of the other node received them, and when.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/outcome.h"

namespace rose::explain {

// One message: the data of one call. Or the moment at which a thread of the node `to` learned that the other side had
// closed or reset a connection (TCP).
struct Exchanged {
  std::int64_t ts_ns = 0;         // wall clock: when it was sent
  std::int64_t taken_ns = 0;      // when the other side had received its last byte; 0: never
  std::string from, to;           // nodes
  std::uint16_t port = 0;         // port of the service
  bool answer = false;            // the service is the sender
  std::uint32_t bytes = 0;        // 0: the end of a connection
  std::int32_t pid = 0, tid = 0;  // process and thread of the sender
  std::int32_t taken_pid = 0, taken_tid = 0;
  std::string words;  // the message with placeholders for what differs each time: "\"put <*>\""
  [[nodiscard]] bool is_end() const { return bytes == 0; }
};

inline constexpr std::size_t kMostExchanged = 40'000;  // at most this many messages of one run are kept

// Describes a message in words. `data` is its beginning; `bytes` is its whole size.
[[nodiscard]] std::string spoken_words(std::string_view data, std::uint32_t bytes);

// Returns the messages sorted by the time at which they were sent (ends: noticed). For TCP, sends and receives are
// matched by byte positions; for UDP, by contents, in the order of time. `nodes`: names by address. Messages of a node
// to itself, and messages whose peer is not a node, are left out.
[[nodiscard]] std::vector<Exchanged> exchanged(const std::vector<schedule::Message>& messages,
                                               const std::map<std::string, std::string>& nodes);

}  // namespace rose::explain
