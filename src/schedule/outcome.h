// The result of one run of a schedule. It is shared by replay, which makes runs, and by diagnose, which evaluates them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/jdk.h"
#include "trace/event.h"

namespace rose::schedule {

struct Schedule;

enum class Verdict { reproduced, not_reproduced, inconclusive };
[[nodiscard]] std::string_view verdict_name(Verdict verdict);  // for example "not-reproduced"

// A location in code. In a Stack, the innermost frame comes first.
struct Frame {
  std::string function;  // demangled; "" if unknown
  std::string file;      // from debug information; "" if unknown
  int line = 0;          // 0: unknown
  // The file that contains the code, as the process sees it. "" for code that was generated at run time; if such code
  // has a function name, it belongs to a JVM or to Python.
  std::string module;
  std::uint64_t offset = 0;  // offset in `module` of the return address; in the innermost frame, of the instruction
};

// True for code that was generated at run time and has a name, that is, a method that a JVM's agent reported, or a
// function of Python.
[[nodiscard]] inline bool is_managed(const Frame& frame) { return frame.module.empty() && !frame.function.empty(); }

// True for a method of the JDK.
[[nodiscard]] inline bool of_jdk(const Frame& frame) { return frame.module.empty() && rose::of_jdk(frame.function); }

// The stack of a thread at the moment when a fault took effect on the thread, or when the thread first waited or failed
// because of a fault.
struct Stack {
  std::string node;
  std::string thread;  // name of the thread
  int pid = 0, tid = 0;
  std::int64_t ns = 0;  // time since the start of the workload; negative: before it
  std::string why;      // what the thread did: "write(/data/log) fails with ENOSPC"
  std::vector<Frame> frames;
  std::string incomplete;  // why frames or names are missing, and what to install to get them; "" if nothing is missing
};

struct ConditionOutcome {
  bool met = false;
  std::int64_t met_ns = 0;  // if `met`: the time since the start of the workload; negative: before it
  std::uint64_t seen = 0;   // number of matching calls, entries or lines
  std::uint64_t wanted = 1;
  std::string node;      // the node on which the condition was met; "": none, for a condition on time
  int pid = 0, tid = 0;  // the thread that met it; 0: none
  std::string words;     // describes the condition: "return of openat(*/log.*) on n1"
};

struct FaultOutcome {
  std::string id;
  bool armed = false;  // everything in its `after` has happened, and the conditions in its `when` were met
  bool fired = false;
  bool withdrawn = false;     // another fault of its group fired
  std::int64_t fired_ns = 0;  // if `fired`: the time since the start of the workload; negative: before it
  // for lasting faults such as a pause: the time of the end, also since the start of the workload; nothing: the fault
  // did not end
  std::optional<std::int64_t> ended_ns;
  std::uint64_t seen = 0;      // number of matching calls while the fault was armed
  std::uint64_t injected = 0;  // number of calls changed, packets dropped or processes signalled
  int pid = 0, tid = 0;        // the thread in which it fired
  std::string node;            // the affected node; for a role, the node that had it at that time
  std::string detail;          // the call or target: "read(/data/snapshot.3)"
  std::string why_not;         // if it did not fire: the reason in one sentence
  // if it fired and changed nothing: the reason in one sentence; "": it had an effect, or it is unknown whether it had
  // one
  std::string no_effect;
  std::vector<ConditionOutcome> conditions;  // in the order of `when`
  std::vector<Stack> stacks;                 // the stacks of the threads that were affected first

  // True if the fault changed something: packets were dropped, calls were answered, a limit was reached, or processes
  // ended.
  [[nodiscard]] bool effective() const { return fired && no_effect.empty(); }
};

// What happened to a name in the schedule's order.
struct OrderOutcome {
  std::string name;
  std::string kind;  // "event", "step" or "fault"
  bool came = false;
  std::int64_t ns = 0;       // if `came`: the time since the start of the workload
  std::string why_not;       // if it did not come: what it waited for
  std::int64_t held_ns = 0;  // for an event: how long the call that completes the event was held until its turn
};

inline constexpr const char* kNotReadable = "(not readable)";  // the text of a value that could not be read

// A value that was requested at a location in the code, in the form in which it was recorded.
struct Value {
  std::int64_t ts_ns = 0;  // time by the wall clock of the trace
  std::string node;
  std::uint32_t question = 0;  // index of the query
  int pid = 0, tid = 0;
  std::string text;  // "-1", "\"abc\"", "LEADER"
  bool is_number = false;
  bool is_pointer = false;  // the value is an address, which differs from run to run
  bool is_named = false;    // the type has few values, as an enumeration or bool has
  double number = 0;        // the value as a number, if is_number
};

// Bytes that a thread of a node sent to another node, or received from it.
struct Message {
  std::int64_t ts_ns = 0;  // wall clock of the trace: when the call returned
  std::string node;
  int pid = 0, tid = 0;
  bool taken = false;                         // true: received; false: sent
  bool tcp = true;                            // false: UDP
  std::string own, peer;                      // addresses
  std::uint16_t own_port = 0, peer_port = 0;  // peer_port 0: a datagram was received without asking for its sender
  std::uint32_t end = 0;    // TCP: sequence number after the last byte, which is the same on both sides
  std::uint32_t bytes = 0;  // 0: a receiving call reported that the connection had ended (TCP)
  std::string data;         // the first bytes of the message
};

// The oracle's result, before the faults are considered.
enum class OracleAnswer { hit, miss, unknown };

struct RunResult {
  Verdict verdict = Verdict::inconclusive;
  std::string reason;  // the reason for the verdict, in one sentence
  OracleAnswer oracle = OracleAnswer::unknown;
  bool stopped = false;  // the run was stopped before its end, because a parallel run had decided; there is no verdict
  // why the run proves nothing, whatever the oracle answered, as a sentence; "": there is no such reason
  std::string doubt;
  std::vector<FaultOutcome> faults;
  std::vector<OrderOutcome> order;  // in the order of the schedule's `order`
  std::string order_broken;         // what came too early, as a sentence; "": nothing came too early
  trace::Trace trace;
  std::vector<Value> values;      // the requested values, sorted by time
  std::vector<Message> messages;  // the messages that nodes sent and received, sorted by time, if they were recorded
  std::vector<std::string> talkative;           // nodes whose messages were recorded only in part
  std::optional<std::int64_t> workload_end_ns;  // since the start of the workload; nothing: unknown
  // when the oracle hit, since the start of the workload; nothing: the oracle did not hit
  std::optional<std::int64_t> oracle_ns;
  double seconds = 0;
  int number = 0;
  std::filesystem::path directory;                // the run's directory; empty if it was not kept
  std::vector<std::filesystem::path> recordings;  // files with recordings of nodes, if they were kept
  std::vector<std::string> messages_seen;  // keys of those messages of the evidence that also occur in this run's logs
};

// For runs of several schedules in parallel. Given the result of the `index`th run, returns true if the runs after it
// are no longer needed. Several threads may call it.
using Decides = std::function<bool(std::size_t index, const RunResult& result)>;

// Determines the verdict. A hit is `reproduced` if at least one fault was effective (or none was planned). A miss is
// `not-reproduced` only if every planned fault that is not optional (one of each group) was effective. Sets verdict and
// reason from `oracle`, `doubt` and `faults`. `oracle_note` explains why the oracle did not decide.
void judge(RunResult& result, const Schedule& schedule, std::string_view oracle_note);

// True if at least one fault of the run was effective.
[[nodiscard]] bool any_effective(const RunResult& result);

}  // namespace rose::schedule
