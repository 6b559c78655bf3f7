// What one run of a schedule showed. Shared by the room that makes runs (replay) and the one that
// reasons about them (diagnose).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/jdk.h"
#include "trace/event.h"

namespace rose::schedule {

struct Schedule;

enum class Verdict { reproduced, not_reproduced, inconclusive };
[[nodiscard]] std::string_view verdict_name(Verdict verdict);  // "not-reproduced"

// A place in code that a thread was in, innermost first in a Stack.
struct Frame {
  std::string function;      // demangled; "" where nothing names it
  std::string file;          // as debug information has it; "" unknown
  int line = 0;              // 0: unknown
  std::string module;        // the file that the code lies in, as the process sees it; "" for code made at run time: if
                             // named, a JVM's
  std::uint64_t offset = 0;  // of the return address (innermost: of the instruction) in `module`
};

// A method of the JDK's.
[[nodiscard]] inline bool of_jdk(const Frame& frame) { return frame.module.empty() && rose::of_jdk(frame.function); }

// Where a thread was when a fault hit it, or first waited or failed on one.
struct Stack {
  std::string node;
  std::string thread;  // its name
  int pid = 0, tid = 0;
  std::int64_t ns = 0;  // since the workload began (negative: before)
  std::string why;      // what the thread did: "write(/data/log) fails with ENOSPC"
  std::vector<Frame> frames;
  std::string incomplete;  // why frames or names are missing, and what to install for more; "" when all are there
};

struct ConditionOutcome {
  bool met = false;
  std::int64_t met_ns = 0;  // with `met`: since the workload began (negative: before)
  std::uint64_t seen = 0;   // matching calls, entries or lines counted for it
  std::uint64_t wanted = 1;
  std::string node;      // where it was met; "": on none (time passing)
  int pid = 0, tid = 0;  // 0: not by a thread of the node
  std::string words;     // "return of openat(*/log.*) on n1"
};

struct FaultOutcome {
  std::string id;
  bool armed = false;  // its `after` were injected and its `when` met
  bool fired = false;
  bool withdrawn = false;                    // another of its group fired
  std::int64_t fired_ns = 0;                 // with `fired`: since the workload began (negative: before)
  std::optional<std::int64_t> ended_ns;      // of one that lasts, such as a pause: likewise; nothing: it did not
  std::uint64_t seen = 0;                    // matching calls seen while armed
  std::uint64_t injected = 0;                // calls changed, packets dropped, processes signalled
  int pid = 0, tid = 0;                      // where it fired
  std::string node;                          // which it hit: of a role, whose it was then
  std::string detail;                        // the call or target in words: "read(/data/snapshot.3)"
  std::string why_not;                       // when it did not fire: one sentence
  std::string no_effect;  // when it fired and changed nothing: one sentence; "": it had an effect, or
                          // nobody can know (README.md, "Effective faults")
  std::vector<ConditionOutcome> conditions;  // as in `when`
  std::vector<Stack> stacks;                 // of the threads that it hit, the first few

  // It changed something: packets were stopped, calls answered, a limit was met, processes ended.
  [[nodiscard]] bool effective() const { return fired && no_effect.empty(); }
};

// What became of a name of the schedule's order.
struct OrderOutcome {
  std::string name;
  std::string kind;  // "event", "step" or "fault"
  bool came = false;
  std::int64_t ns = 0;       // with `came`: since the workload began
  std::string why_not;       // when it did not come: what it waited for
  std::int64_t held_ns = 0;  // an event: how long what would have made it come was held until it was its turn
};

inline constexpr const char* kNotReadable = "(not readable)";  // a value's text where it could not be read

// What was asked for at a place of the code, as it was seen there.
struct Value {
  std::int64_t ts_ns = 0;  // wall clock, by the trace's
  std::string node;
  std::uint32_t question = 0;  // which was asked
  int pid = 0, tid = 0;
  std::string text;  // "-1", "\"abc\"", "LEADER"
  bool is_number = false;
  bool is_pointer = false;  // an address, which differs from run to run
  bool is_named = false;    // one of few: an enumeration's, a bool
  double number = 0;        // with is_number
};

// Bytes that a thread of a node handed to a connection to another one, or took from one.
struct Message {
  std::int64_t ts_ns = 0;  // wall clock, by the trace's: when the call returned
  std::string node;
  int pid = 0, tid = 0;
  bool taken = false;                         // from the connection
  bool tcp = true;                            // else UDP
  std::string own, peer;                      // addresses
  std::uint16_t own_port = 0, peer_port = 0;  // peer 0: a datagram that was taken without asking who sent it
  std::uint32_t end = 0;  // TCP: the number of the byte behind the last one, which both sides count alike
  std::uint32_t bytes = 0;
  std::string data;  // the first of them
};

// The oracle's word, before faults are considered.
enum class OracleAnswer { hit, miss, unknown };

struct RunResult {
  Verdict verdict = Verdict::inconclusive;
  std::string reason;  // one sentence: why this verdict
  OracleAnswer oracle = OracleAnswer::unknown;
  std::string doubt;  // a sentence: why the run tells nothing, whatever the oracle answered; "": nothing of the kind
  std::vector<FaultOutcome> faults;
  std::vector<OrderOutcome> order;  // as in the schedule's `order`
  std::string order_broken;         // a sentence: what came too early; "": nothing did
  trace::Trace trace;
  std::vector<Value> values;                    // that were asked for, by time
  std::vector<Message> messages;                // that nodes sent and took, by time, where they were watched
  std::vector<std::string> talkative;           // nodes of which not all messages are told
  std::optional<std::int64_t> workload_end_ns;  // since the workload began; nothing: not known
  std::optional<std::int64_t>
      oracle_ns;  // when the oracle found the bug, since the workload began; nothing: it did not
  double seconds = 0;
  int number = 0;
  std::filesystem::path directory;                // empty when it was not kept
  std::vector<std::filesystem::path> recordings;  // of its nodes, as far as they were kept
  std::vector<std::string> shown;                 // keys of the evidence's messages that the run's logs have, too
};

// The verdict of a run. A hit is `reproduced` if at least one fault was effective (or none was planned); a miss is
// `not-reproduced` only if every planned fault that is not optional was effective (one of each group). Sets verdict and
// reason from `oracle`, `doubt` and `faults`; `oracle_note` explains an unknown answer.
void judge(RunResult& result, const Schedule& schedule, std::string_view oracle_note);

// At least one of its faults was effective.
[[nodiscard]] bool any_effective(const RunResult& result);

}  // namespace rose::schedule
