// Runs in the form in which they are compared. A run is a list of steps (a function entered, a call that failed, a
// message logged), and each step has one kind. A kind is the same in all runs, because numbers and names that vary are
// replaced in it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explain/messages.h"
#include "explain/recorded.h"
#include "logs/line/level.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::explain {

// The largest number of steps of a run. Beyond this limit, entries of busy functions are thinned out. If that is not
// enough, the last steps are dropped, and the report says so.
inline constexpr std::size_t kMostSteps = 300'000;

enum class Group {
  failing,  // the bug occurred
  sound,    // no fault, no bug
  near,     // the fault fired, at its own or a neighbouring call, and the bug did not occur
  shorter,  // a shorter fault that still reproduced the bug
};

// A message of a node's log, and when it was written.
struct LogLine {
  std::int64_t ts_ns = 0;  // wall clock
  std::string node;
  std::uint32_t kind = 0;  // number of its template, which is the same in all runs
  logs::Level level = logs::Level::none;
  std::string text;
  std::string place;                         // "n1/stderr.log:17"
  std::vector<schedule::Frame> frames = {};  // the frames of the stack trace in the message, innermost first
};

// `message` comes from a log; `sent` and `taken` are messages between nodes. `thrown`: an exception leaves a function
// of Java or Python. `caught`: the function catches an exception that left another one.
enum class StepKind { function, thrown, failed_call, call, message, process, silence, value, sent, taken, caught };

inline constexpr std::uint32_t kNoKind = 0xffffffff;

// Steps of different runs are compared if their kinds are equal. A comment such as "thrown: ..." says which StepKind
// uses a field.
struct Kind {
  StepKind what = StepKind::function;
  std::string node;  // "": any node
  // function, thrown, caught: the function's name; value: the function in which it was read, or the caller, if
  // known
  std::string function;
  std::string words;           // "enters f", "write fails with ENOSPC (*/log)"; for a message: its number
  std::uint32_t message = 0;   // message: its template
  std::uint32_t question = 0;  // value: the number of its query
  std::string callee = {};     // value of a query about calls: the function that is called
  // failed_call, if a file was not found: the call, and the suffix of the file's name (".class"); otherwise ""
  std::string lookup = {};
  bool changes_file = false;   // call: its argument is a path, and it is no open that only reads
  bool out_of_memory = false;  // process: the kernel ended the process for lack of memory
  bool unsure = false;         // some occurrences of this kind are unknown, so its presence or absence is no evidence
  // function: some run lacks entries of it, so the position of an entry among other steps proves nothing
  bool sampled = false;
  std::string peer = {};            // sent, taken: the other node, which is the second word of `words`; "": any node
  std::uint32_t as_sent = kNoKind;  // taken: the kind of the same message when it is sent
};
// True for a successful open that only reads. The file was changed earlier in the same run.
[[nodiscard]] bool opens_to_read(const Kind& kind);
[[nodiscard]] inline bool is_exchange(StepKind what) { return what == StepKind::sent || what == StepKind::taken; }

// True for a step by which a fault of this kind takes effect. A limit takes effect when the limited resource is needed:
// a call fails, or the kernel ends a process.
[[nodiscard]] bool takes_effect(schedule::FaultKind fault, const Kind& kind);

class Kinds {
 public:
  std::uint32_t of(Kind kind);
  [[nodiscard]] const Kind& operator[](std::uint32_t id) const { return kinds_[id]; }
  [[nodiscard]] Kind& at(std::uint32_t id) { return kinds_[id]; }
  [[nodiscard]] std::size_t size() const { return kinds_.size(); }

 private:
  std::vector<Kind> kinds_;
  std::map<std::string, std::uint32_t> ids_;
};

struct Step {
  std::int64_t ts_ns = 0;  // wall clock
  std::uint32_t kind = 0;
  std::uint32_t in = kNoKind;  // the function that this thread entered last
  std::int32_t pid = 0, tid = 0;
  // index of the event in the trace, or of the line, value or exchanged message, depending on the kind
  std::uint32_t source = 0;
};

struct Run {
  Group group = Group::sound;
  int number = 0;
  std::int64_t zero_ns = 0;  // when the workload began, wall clock
  std::int64_t end_ns = 0;   // when the workload ended, or when the oracle found the bug
  std::int64_t cut_ns = 0;   // time of the first fault, or the moment that corresponds to it: see align()
  // with a fault: steps between this time and the cut may correspond to steps after the cut of correct runs; see
  // align()
  std::int64_t known_ns = 0;
  // without a fault: the cut is the same step as in failing runs; false: it is only at about the same time
  bool found_cut = true;
  std::vector<schedule::FaultOutcome> faults;
  std::vector<Step> steps;  // by time
  // kinds of functions that were entered too often to be watched to the end, so a missing entry proves nothing
  std::set<std::uint32_t> let_go;
  std::vector<schedule::Value> values;    // answers to queries; add_values() makes steps of them
  std::set<std::uint32_t> unasked;        // queries that other runs were asked, but not this run
  bool cut_short = false;                 // the last steps are missing, because there were more than kMostSteps
  std::vector<RecordedMessage> recorded;  // messages of nodes that record themselves, in each node's order
  std::set<std::string> recorded_late;    // nodes whose recordings lack their beginning, because it was overwritten
  std::vector<Exchanged> exchanged;       // messages between nodes
  std::vector<std::string> talkative;     // nodes whose exchanges are only partly known
};

// Condenses a run to its steps. Steps that are the fault itself are left out.
[[nodiscard]] Run condense(const schedule::RunResult& result, const std::vector<LogLine>& lines, Group group,
                           Kinds& kinds);

// The faults that fired, in the order in which they fired.
[[nodiscard]] std::vector<const schedule::FaultOutcome*> fired(const Run& run);

// Marks the messages of which some run has only an incomplete record: their presence or absence is no evidence. Call
// before merge_nodes().
void doubt_exchanges(const std::vector<Run>& runs, Kinds& kinds);

// Marks failed lookups that are no evidence. If correct runs fail to find many files of one kind (class files, modules,
// catalogues), the set of files that are looked up depends on when something is loaded, not on decisions of the
// program.
void doubt_lookups(const std::vector<Run>& runs, Kinds& kinds);

// Maps each kind to the kind into which it was merged.
class Merged {
 public:
  Merged() = default;  // maps every kind to itself
  explicit Merged(std::vector<std::uint32_t> now) : now_(std::move(now)) {}
  [[nodiscard]] bool none() const { return now_.empty(); }
  [[nodiscard]] std::uint32_t operator[](std::uint32_t kind) const {
    return now_.empty() || kind == kNoKind ? kind : now_[kind];
  }
  void apply(std::vector<Run>& runs) const;

 private:
  std::vector<std::uint32_t> now_;  // the new kind of each old kind
};

// Merges nodes if the node that a fault hits changes from run to run (for example the leader): equal steps of different
// nodes then get one kind. Otherwise the nodes stay separate. Alternatives (`group`), each of which fires on one node,
// are treated in the same way. `always`: merge the nodes, whichever of them the faults hit.
[[nodiscard]] Merged merge_nodes(const std::vector<Run>& runs, Kinds& kinds, const schedule::Schedule& schedule,
                                 bool always = false);

// Sets `cut_ns` of all runs. In a run with a fault, it is the time of the fault. In a run without a fault, it is the
// time of the last step that all failing runs make before the fault (same kind, same ordinal); if there is no such
// step, it is as long after the start of the workload as the fault usually is. The common step may come some time
// before the fault. Therefore `known_ns` of a run with a fault is the time of the same step, or a fixed time before the
// fault.
void align(std::vector<Run>& runs, const Kinds& kinds, const Merged& merged);

}  // namespace rose::explain
