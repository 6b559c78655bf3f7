// Runs in the form in which they are compared: each a list of steps (a function entered, a call that failed, a message
// logged), each step of one kind. Kinds are the same in all runs, although numbers and names in them differ. Pure.
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
#include "logs/line/form.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::explain {

// The limit per run: beyond it, entries of busy functions are thinned out. If that is not enough, the last steps are
// dropped, which is reported.
inline constexpr std::size_t kMostSteps = 300'000;

enum class Group {
  failing,  // the bug occurred
  sound,    // no fault, no bug
  near,     // the fault fired, there or at a neighbouring call, and the bug did not occur
  shorter,  // a shorter fault that still reproduced the bug
};

// A message of a node's log, and when it was written.
struct LogLine {
  std::int64_t ts_ns = 0;  // wall clock
  std::string node;
  std::uint32_t kind = 0;  // its template: the same number in all runs
  logs::Level level = logs::Level::none;
  std::string text;
  std::string place;                         // "n1/stderr.log:17"
  std::vector<schedule::Frame> frames = {};  // of the stack trace in it, innermost first
};

// `message` comes from a log; `sent` and `taken` are messages between nodes. `thrown`: an exception leaves a Java
// method.
enum class StepKind { function, thrown, failed_call, call, message, process, silence, value, sent, taken };

inline constexpr std::uint32_t kNoKind = 0xffffffff;

// Steps of different runs are compared if their kinds are equal.
struct Kind {
  StepKind what = StepKind::function;
  std::string node;  // "": whichever
  // function: its name; thrown: the name of the method; value: the function in which it was read, or which calls, if
  // that is known
  std::string function;
  std::string words;           // "enters f", "write fails with ENOSPC (*/log)"; for a message: its number
  std::uint32_t message = 0;   // message: its template
  std::uint32_t question = 0;  // value: the number of its query
  std::string callee = {};     // value of a query about calls: the function that is called
  std::string lookup =
      {};  // failed_call, if a file was not found: the call, and the suffix of such files (".class"); otherwise ""
  bool out_of_memory = false;  // process: the kernel ended it for lack of memory
  bool unsure = false;         // some of its occurrences are unknown, so its presence or absence is no evidence
  bool sampled = false;   // function: some run lacks entries of it, so its position among other steps proves nothing
  std::string peer = {};  // sent, taken: the other node, the second word of `words`; "": whichever
  std::uint32_t as_sent = kNoKind;  // taken: the kind of the same message when it is sent
};
[[nodiscard]] inline bool is_exchange(StepKind what) { return what == StepKind::sent || what == StepKind::taken; }

// True for a step by which a fault of that kind takes effect. A limit takes effect when the resource is needed: a call
// fails, or the kernel ends a process.
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
  std::uint32_t source = 0;  // index of the event in the trace, of the line, of the value, or of the exchanged message
};

struct Run {
  Group group = Group::sound;
  int number = 0;
  std::int64_t zero_ns = 0;  // when the workload began, wall clock
  std::int64_t end_ns = 0;   // when the workload ended, or when the oracle found the bug
  std::int64_t cut_ns = 0;   // the first fault, or the moment that corresponds to it: see align()
  std::int64_t known_ns =
      0;  // with a fault: steps between this time and the cut may be later than the cut of correct runs; see align()
  bool found_cut =
      true;  // without a fault: the cut is the same step as in failing runs; false: it is only at about the same time
  std::vector<schedule::FaultOutcome> faults;
  std::vector<Step> steps;  // by time
  // functions that were entered too often to be watched to the end, so a missing entry proves nothing
  std::set<std::uint32_t> let_go;
  std::vector<schedule::Value> values;    // answers to queries; add_values() makes steps of them
  std::set<std::uint32_t> unasked;        // queries that other runs were asked and this one was not
  bool cut_short = false;                 // there were more than kMostSteps
  std::vector<RecordedMessage> recorded;  // of nodes that record themselves, in each node's order
  std::set<std::string> recorded_late;    // nodes whose recordings lack the beginning, which was overwritten
  std::vector<Exchanged> exchanged;       // between nodes
  std::vector<std::string> talkative;     // nodes whose exchanges are only partly known
};

// Condenses a run to its steps, without those that are the fault itself.
[[nodiscard]] Run condense(const schedule::RunResult& result, const std::vector<LogLine>& lines, Group group,
                           Kinds& kinds);

// The faults that fired, in the order in which they fired.
[[nodiscard]] std::vector<const schedule::FaultOutcome*> fired(const Run& run);

// Marks messages that are incompletely known in some run: their presence or absence is not evidence. Call before
// merge_nodes().
void doubt_exchanges(const std::vector<Run>& runs, Kinds& kinds);

// Marks failed lookups that are no evidence. If correct runs fail to find many files of one kind (class files, modules,
// catalogues), which of them are looked up depends on when something is loaded, not on decisions of the program.
void doubt_lookups(const std::vector<Run>& runs, Kinds& kinds);

// Maps each kind to the kind that it is merged into.
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
  std::vector<std::uint32_t> now_;  // by number of the kind
};

// The node that a fault hits may change from run to run (for example the leader). Then steps of different nodes get one
// kind; otherwise they stay apart. The same holds for alternatives (`group`), each of which fires on one node.
// `always`: merge the nodes, whichever of them the faults hit.
[[nodiscard]] Merged merge_nodes(const std::vector<Run>& runs, Kinds& kinds, const schedule::Schedule& schedule,
                                 bool always = false);

// Sets `cut_ns` of all runs. In runs with a fault, it is the time of the fault. In the others, it is the step that
// comes last before the fault in all failing runs (same kind, same ordinal), or else the same time after the start of
// the workload. That moment may be earlier than the fault would have been, so `known_ns` of runs with a fault is the
// time of that step, or about as long before the fault.
void align(std::vector<Run>& runs, const Kinds& kinds, const Merged& merged);

}  // namespace rose::explain
