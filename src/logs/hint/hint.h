// Hints: the causes that a failure's logs suggest. A cause is a failed call, an exception, a process that ended or was
// paused, a silent peer, a wrong clock or an exhausted resource. Each hint has a node, a time, and the message that
// reports the cause.
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

inline constexpr std::size_t kMostHints = 200;  // the hints with the greatest weights are kept
// At most this many exceptions of one node are kept, one for each place at which exceptions were thrown.
inline constexpr std::size_t kMostThrown = 40;
inline constexpr std::size_t kMostTracesRead = 1000;  // at most this many stack traces of one node are read

struct Hint {
  // stop: the process was paused; clock: a clock is wrong; limit: a resource is exhausted or slow, but no failed call
  // is reported.
  enum class Kind { call, end, stop, silence, thrown, clock, limit };
  enum class Limit { disk_full, disk_slow, descriptors };
  // Most fields are used only for some kinds. These kinds are named at the beginning of the field's comment.
  Kind kind = Kind::call;
  std::string node;              // the node's name in the logs; "": unknown
  std::int64_t ts_ns = kNoTime;  // wall-clock time of the message, or of the last message before a silence
  // stop: the earliest time at which the pause may have begun, if no message shows the time; kNoTime: it began at
  // ts_ns.
  std::int64_t since_ns = kNoTime;
  // end: when the process started again; stop, silence: when the pause or silence was over; kNoTime: not seen.
  std::int64_t until_ns = kNoTime;
  std::uint64_t count = 1;         // number of messages that report this cause
  int error = 0;                   // call: the error
  bool exact = false;              // call: the message names the system call
  Limit limit = Limit::disk_full;  // limit: which resource
  // limit (disk_slow): how long a call took; stop: how long the pause was, as the process reports it
  std::int64_t took_ns = 0;
  std::vector<std::string_view> syscalls;  // call: the system calls that may have failed, most likely first
  std::string path;                        // call: the file; "": unknown
  // call, silence: address or name of the peer; clock: the node whose clock shows another time; "": unknown
  std::string peer;
  int signal = 0, exit_code = -1;  // end: how the process ended; -1: no exit code is known
  bool closed = false;             // silence: the peer's machine closed or refused the connection
  bool answered = false;           // silence: at least one message reports a closed or refused connection
  bool unreachable = false;        // silence: the peer could not be reached, whether or not its process was running
  bool no_route = false;  // silence: the peer was unreachable because the node that logs the message had no route to it
  bool itself = false;    // end: the process itself caused its end
  // end: a message reports the end; false: the hint's message is the last message before the end
  bool reported = false;
  // silence, end: the message does not name the peer; call: the message does not name the failed call
  bool unnamed = false;
  bool passing = false;  // the message reports a single error, after which everything went on as before
  bool missed = false;   // end, stop: the only evidence is that other nodes miss the node
  // silence: at least one message reports a timeout; false: the peer is only reported as gone, so it may have left on
  // request
  bool timed_out = false;
  bool ended_early = false;    // end: the only evidence is that the node's log ends early
  bool helper = false;         // end: the process is a child of the node's main process, which survives
  bool out_of_memory = false;  // end: the kernel's OOM killer ended the process
  StackTrace trace;            // thrown: the stack trace
  ClockWords clock;            // clock: what the message states
  double weight = 0;           // how explicitly the logs report the cause, 0..1
  // log: index into the failure's nodes; message: index of the message among that node's messages
  std::size_t log = kNoNode;
  std::uint32_t message = 0;
  std::string words;  // "server.log:17 of n1: 'cannot save: No space left on device'"
};

// The names and addresses by which messages may mention a node.
struct NodeName {
  std::string node;
  std::vector<std::string> also;
};

// Returns the hints, greatest weight first, at most kMostHints. `nodes`: the nodes of the deployment.
[[nodiscard]] std::vector<Hint> find_hints(const Logs& failure, const Logs& normal, const Difference& difference,
                                           const std::vector<NodeName>& nodes);

}  // namespace rose::logs
