// What a failure's logs tell of its causes: failed calls, exceptions, processes that ended or stood still, peers that fell silent; each
// with its node, moment, and the message that says so. And what a run's logs show of the same messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "logs/beside.h"
#include "logs/compare.h"
#include "logs/meaning.h"
#include "logs/thrown.h"
#include "logs/untimed.h"

namespace rose::logs {

inline constexpr std::size_t kMostHints = 200;  // the heaviest
inline constexpr std::size_t kMostThrown = 40;  // exceptions of one node: the first of each place
inline constexpr std::size_t kMostTracesRead = 1000;  // of one node's stack traces

struct Hint {
  enum class Kind { call, end, stop, silence, thrown };  // stop: it stood still
  Kind kind = Kind::call;
  std::string node;              // as the logs name it; "" unknown
  std::int64_t ts_ns = kNoTime;  // of the message, or of the last one before it fell silent; wall clock
  std::int64_t since_ns = kNoTime;  // stop: it may have begun as early, of which nothing tells; kNoTime: at ts_ns
  std::int64_t until_ns = kNoTime;  // end: when it began again; stop, silence: their end; kNoTime: not seen
  std::uint64_t count = 1;       // messages that say so
  int error = 0;                 // call
  std::vector<std::string_view> syscalls;  // call: likeliest first
  std::string path;              // call; "" unknown
  std::string peer;              // call, silence: address or node name; "" unknown
  int signal = 0, exit_code = -1;  // end
  bool closed = false;           // silence: the peer's machine closed or refused the connection
  bool no_way = false;           // silence: there was no way to the peer, whatever it did
  bool itself = false;           // end: by its own doing
  bool told = false;             // end: the message tells of it, and did not come before it
  bool fell_silent = false;      // end: all that tells of it is that nothing more is said
  bool helper = false;           // end: of a process that the node's main one had started, and which lives on
  bool out_of_memory = false;    // end: the kernel's, for want of memory
  StackTrace trace;              // thrown
  double weight = 0;             // 0..1: how plainly the logs say it
  std::size_t log = kNoNode;     // index into the failure's nodes of the message, and of the message among that node's
  std::uint32_t message = 0;
  std::string words;             // "server.log:17 of n1: 'cannot save: No space left on device'"
};

// `nodes`: names and addresses by which messages may speak of a node.
struct NodeName {
  std::string node;
  std::vector<std::string> also;
};

struct Evidence {
  Logs failure;
  Logs normal;                   // without nodes: no run without faults was made yet
  Difference difference;
  std::vector<Hint> hints;       // heaviest first
};

[[nodiscard]] std::vector<Hint> find_hints(const Logs& failure, const Logs& normal, const Difference& difference,
                                           const std::vector<NodeName>& nodes);

// What runs show of an evidence's observables. Safe to use from several runs at once.
class Judge {
 public:
  // Both must outlive it. Kinds of runs are added to `kinds`.
  Judge(const Evidence& evidence, Templates& kinds, ReadOptions options);

  // The keys of the observables that these logs of a run show; nothing when they can't be read.
  [[nodiscard]] std::set<std::string> shown(const std::vector<Input>& run);
  // The failure's log beside the run's; `watch` (may be null) followed the run.
  [[nodiscard]] std::vector<Beside> beside(const std::vector<Input>& run, const Watch* watch);

 private:
  const Evidence& evidence_;
  Templates& kinds_;
  ReadOptions options_;
  std::mutex mutex_;
};

// "says 17 of n1": a name for an observable.
[[nodiscard]] std::string key_of(const Logs& failure, const Observed& observed);
// "server.log:17 of n1: 'cannot save'", the text cut to a line's length.
[[nodiscard]] std::string quote(const Logs& logs, std::size_t node, const Message& message);

}  // namespace rose::logs
