// Hints: the causes that a failure's logs suggest. A failed call, an exception, a process that ended or was paused, a
// silent peer, a wrong clock or an exhausted resource, each with its node, its time and the message that reports it.
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

inline constexpr std::size_t kMostHints = 200;        // the ones with the greatest weights are kept
inline constexpr std::size_t kMostThrown = 40;        // exceptions of one node: the first one of each place
inline constexpr std::size_t kMostTracesRead = 1000;  // stack traces of one node

struct Hint {
  // stop: the process was paused; clock: a clock is wrong; limit: a resource is exhausted or slow, and no failed call
  // is reported for it.
  enum class Kind { call, end, stop, silence, thrown, clock, limit };
  enum class Limit { disk_full, disk_slow, descriptors };
  // If the comment of a field begins with kinds of hints, other kinds do not use the field.
  Kind kind = Kind::call;
  std::string node;              // the node's name in the logs; "" unknown
  std::int64_t ts_ns = kNoTime;  // wall clock: of the message, or of the last message before a silence
  // stop: the earliest time at which it may have begun, if no message shows that; kNoTime: it began at ts_ns.
  std::int64_t since_ns = kNoTime;
  // end: when the process started again; stop, silence: when it was over; kNoTime: not seen.
  std::int64_t until_ns = kNoTime;
  std::uint64_t count = 1;         // messages that report it
  int error = 0;                   // call
  bool exact = false;              // call: the message names the system call
  Limit limit = Limit::disk_full;  // limit
  std::int64_t took_ns = 0;        // limit (disk_slow): how long a call took; stop: the length that the process reports
  std::vector<std::string_view> syscalls;  // call: most likely first
  std::string path;                        // call; "" unknown
  std::string peer;  // call, silence: address or node name; clock: the node whose clock it differs from; "" unknown
  int signal = 0, exit_code = -1;  // end
  bool closed = false;             // silence: the peer's machine closed or refused the connection
  bool answered = false;           // silence: at least one message reports a closed or refused connection
  bool unreachable = false;        // silence: the peer could not be reached, whatever its process did
  bool no_route = false;           // silence: the peer was unreachable because the writer had no route to it
  bool itself = false;             // end: caused by the process itself
  bool reported = false;   // end: a message reports it; false: the hint's message is the last one before the end
  bool unnamed = false;    // silence, end: the message does not name the peer; call: it names no failed call
  bool passing = false;    // a single error after which everything went on as before
  bool missed = false;     // end, stop: the only evidence is that other nodes miss the node
  bool timed_out = false;  // silence: a timeout expired; a peer that is only reported as gone may have left on request
  bool ended_early = false;    // end: the only evidence is that the node logs nothing more
  bool helper = false;         // end: the process is a child of the node's main process, which survives
  bool out_of_memory = false;  // end: the kernel's OOM killer ended it
  StackTrace trace;            // thrown
  ClockWords clock;            // clock
  double weight = 0;           // 0..1: how explicitly the logs report it
  // log, message: index into the failure's nodes, and of the message among that node's messages
  std::size_t log = kNoNode;
  std::uint32_t message = 0;
  std::string words;  // "server.log:17 of n1: 'cannot save: No space left on device'"
};

// The names and addresses by which messages may mention a node.
struct NodeName {
  std::string node;
  std::vector<std::string> also;
};

// Greatest weight first, at most kMostHints. `nodes`: the nodes of the deployment.
[[nodiscard]] std::vector<Hint> find_hints(const Logs& failure, const Logs& normal, const Difference& difference,
                                           const std::vector<NodeName>& nodes);

}  // namespace rose::logs
