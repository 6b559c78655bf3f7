// What a failure's logs tell of its causes: failed calls, exceptions, processes that ended or stood still, peers that
// fell silent, wrong clocks; each with its node, moment, and the message that says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "logs/clock_words.h"
#include "logs/compare.h"
#include "logs/reader.h"
#include "logs/thrown.h"

namespace rose::logs {

inline constexpr std::size_t kMostHints = 200;        // the heaviest
inline constexpr std::size_t kMostThrown = 40;        // exceptions of one node: the first of each place
inline constexpr std::size_t kMostTracesRead = 1000;  // of one node's stack traces

struct Hint {
  // stop: it stood still; clock: it is wrong; limit: a resource is exhausted or slow, and no call's failure says so
  enum class Kind { call, end, stop, silence, thrown, clock, limit };
  enum class Limit { disk_full, disk_slow, descriptors };
  Kind kind = Kind::call;
  std::string node;                 // as the logs name it; "" unknown
  std::int64_t ts_ns = kNoTime;     // of the message, or of the last one before it fell silent; wall clock
  std::int64_t since_ns = kNoTime;  // stop: it may have begun as early, of which nothing tells; kNoTime: at ts_ns
  std::int64_t until_ns = kNoTime;  // end: when it began again; stop, silence: their end; kNoTime: not seen
  std::uint64_t count = 1;          // messages that say so
  int error = 0;                    // call
  bool exact = false;               // call: the message names the call itself
  Limit limit = Limit::disk_full;   // limit
  std::int64_t took_ns = 0;         // limit: disk_slow: how long a call took; stop: how long, as it says itself
  std::vector<std::string_view> syscalls;  // call: likeliest first
  std::string path;                        // call; "" unknown
  std::string peer;                // call, silence: address or node name; clock: whose it differs from; "" unknown
  int signal = 0, exit_code = -1;  // end
  bool closed = false;             // silence: the peer's machine closed or refused the connection
  bool answered = false;           // silence: one message or another says that it did so
  bool no_way = false;             // silence: there was no way to the peer, whatever it did;
  bool no_route = false;           // by the own machine's routes, and not because the peer's machine did not answer
  bool itself = false;             // end: by its own doing
  bool reported = false;           // end: the message reports it, and was not logged before it
  bool unnamed = false;            // silence, end: the message does not name the peer
  bool missed = false;             // end, stop: all that speaks for it is that others miss the node
  bool timed_out = false;          // silence: somebody waited in vain; what is only said to be gone may have left
  bool fell_silent = false;        // end: all that tells of it is that nothing more is said
  bool helper = false;             // end: of a process that the node's main one had started, and which lives on
  bool out_of_memory = false;      // end: the kernel's, for want of memory
  StackTrace trace;                // thrown
  ClockWords clock;                // clock
  double weight = 0;               // 0..1: how plainly the logs say it
  std::size_t log = kNoNode;  // index into the failure's nodes of the message, and of the message among that node's
  std::uint32_t message = 0;
  std::string words;  // "server.log:17 of n1: 'cannot save: No space left on device'"
};

// `nodes`: names and addresses by which messages may speak of a node.
struct NodeName {
  std::string node;
  std::vector<std::string> also;
};

// Heaviest first.
[[nodiscard]] std::vector<Hint> find_hints(const Logs& failure, const Logs& normal, const Difference& difference,
                                           const std::vector<NodeName>& nodes);

}  // namespace rose::logs
