// Compares runs of a schedule that reproduces the bug with correct runs, to explain how the program handled the fault:
// determines suspects, and the story from the fault to the symptom. Pure: makes no runs, reads no files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "explain/compare.h"
#include "explain/features.h"
#include "explain/runs.h"
#include "explain/values.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::explain {

enum class Verdict {
  explained,
  nothing_found,   // the bug occurred, but no fault fired, or all differences may be due to chance
  not_reproduced,  // the bug did not occur
  inconclusive,    // runs could not be judged, or the bug occurs without faults
};
[[nodiscard]] std::string_view verdict_name(Verdict verdict);  // for example "nothing-found"

struct Suspect {
  std::string function;
  std::string file;  // "" unknown
  int line = 0;      // 0 unknown
  std::string node;  // "": several nodes
  Features features;
  double score = 0;  // probability that this suspect, and no other, mishandled the fault; see model.h
  std::string why;
  // `fresh`: the nodes ("": any) on which all failing runs enter the function after the fault, and no other run does.
  // `lost`: the nodes on which all correct runs enter it after the fault, and no failing run does.
  std::set<std::string> fresh, lost;
};

// A call of a function.
struct Call {
  std::string function, caller;
  std::string node;
  std::string file;     // the position of the call; "" if unknown
  int line = 0;         // 0 unknown
  bool starts = false;  // not a direct call: the caller starts a goroutine or a thread, or passes a callback
};

// What followed a call that a fault made fail.
struct Aftermath {
  std::string node;
  // keys (key_of()) of the application's functions on the stack of that call, innermost first
  std::vector<std::string> stack;
  std::string entered;  // the function that the thread entered next, in most failing runs
};

// A difference, described in words.
struct DifferenceText {
  std::string node, words;
  bool missing = false, clean = false, only_bug = false;
  double failing = 0, sound = 0, near = 0, weight = 0;
  std::int64_t after_ns = 0;
  std::string callee;  // the function that the step calls or, if the step is missing, no longer calls
};

struct StoryLine {
  enum class Kind { fault, thread, difference, missing, message, process, symptom };
  Kind kind = Kind::difference;
  std::int64_t ts_ns = 0;  // wall clock, in the run whose story is reported
  std::int64_t at_ns = 0;  // since the workload began
  std::string node, text;
  std::string evidence;      // "event 412", "n1/stderr.log:17", "3 of 3 failing runs, 0 of 3 correct ones"
  bool first_wrong = false;  // the first difference that all failing runs have and no correct run has
  bool usual = false;        // a message that correct runs may have, too
};

// What identifies a function besides its name.
struct Place {
  std::string file;
  int line = 0;
};

// The input of explain(): the schedule, the compared runs, and the run whose story is reported.
struct Input {
  schedule::Schedule schedule;
  std::vector<Run> runs;  // in condensed form
  Kinds kinds;
  std::function<std::string(std::uint32_t)> message;  // the text of a message's template
  // The run whose story is reported: one that failed, with its trace and lines. Its condensed form is runs[story_run].
  schedule::RunResult story;
  std::vector<LogLine> lines;
  std::size_t story_run = 0;
  std::string run_dir;        // the folder of that run, to shorten paths
  std::string oracle_output;  // the last lines of the oracle's output in that run
  std::string workload_ended;
  std::vector<Question> questions;  // the queries that the runs were asked
  std::function<Place(const std::string& node, const std::string& function)> place;  // may be empty
  std::vector<std::string> unseen;  // for each node whose functions cannot be seen: the reason, and what to do about it
  std::vector<std::string> limits;  // other gaps in the data
};

// What one node sent to another after the fault, in the runs of one side (failing or correct).
struct ExchangeCount {
  std::uint64_t least = 0, most = 0;  // messages in one run
  std::uint64_t least_bytes = 0, most_bytes = 0;
  std::uint64_t untaken = 0;  // the largest number of messages in one run that the other node never received
};
struct ExchangeTable {
  std::string from, to;
  std::uint16_t port = 0;  // port of the service
  bool answer = false;     // the service is the sender
  ExchangeCount failing, sound, near;
  std::string differs;  // how the sides differ, in words; "": they differ no more than equal runs do
};

// One round of queries that `rose explain --deepen` chose.
struct Round {
  std::vector<std::string> functions;  // functions that this round queried
  std::size_t asked = 0,
              // queries whose answers distinguish failing from correct runs, and did not in any earlier round
      differing = 0;
  int runs = 0;
  double seconds = 0;
  double share = 0;  // share of the runs' time that was spent on reading values
};

struct Explanation {
  Verdict verdict = Verdict::inconclusive;
  std::string reason;               // one sentence
  std::string fault;                // id of the fault that fired first, with which the story begins
  std::vector<std::string> faults;  // described in words
  struct StackOf {
    std::string fault;
    schedule::Stack stack;
    // number of further threads that the fault hit while they only waited, in no function of the application
    std::size_t others = 0;
  };
  std::vector<StackOf> stacks;
  std::vector<Suspect> suspects;  // best first
  // Functions (node and key_of()) that no longer ran because a crash ended their process: all failing runs enter them
  // before the crash, and no failing run enters them after it.
  std::set<std::pair<std::string, std::string>> killed;
  std::vector<Aftermath> aftermaths;
  std::vector<DifferenceText> differences;  // heaviest first
  std::vector<StoryLine> story;
  // the functions that the run whose story is reported enters between the fault and the symptom, in this order: the
  // earliest, the latest, the second earliest, and so on
  std::vector<std::string> path;
  std::vector<Round> rounds;                 // the rounds of --deepen
  std::vector<RecordedDivergence> recorded;  // where recordings of failing and correct runs diverge, earliest first
  std::vector<ValueTable> values;            // answers to the queries, in the order of the queries
  std::vector<ExchangeTable> exchanges;      // between nodes; those that differ first
  std::vector<std::string> limits;           // what could not be determined, and why
  std::size_t failing = 0, sound = 0, near = 0, shorter = 0;  // numbers of runs that were compared
  double chance = 1;
  std::string symptom;
};

inline constexpr std::size_t kMostSuspects = 60;
inline constexpr std::size_t kMostDifferences = 60;
inline constexpr std::size_t kMostStoryLines = 16;

// Explains the failing runs, of which there must be at least one. Aligns the runs first.
[[nodiscard]] Explanation explain(Input& input);

// True if every difference may be noise, and a few more runs of each side could decide whether it is. Needs at least
// one failing run. Aligns the runs, and marks unreliable kinds of steps.
[[nodiscard]] bool needs_more_runs(Input& input);

// The parts of explain(), in the order in which it uses them.
[[nodiscard]] std::vector<Suspect> suspects_of(const Input& input, const Comparison& comparison);
[[nodiscard]] std::vector<StoryLine> story_of(const Input& input, const Comparison& comparison);

[[nodiscard]] std::vector<std::string> path_of(const Input& input);

// Compares the same period after the cut (Run::cut_ns) in all runs. Call after align(). There is no table for nodes
// whose messages are incomplete.
[[nodiscard]] std::vector<ExchangeTable> exchange_tables(const std::vector<Run>& runs);
// "12 to 14 messages, 300 to 340 bytes, up to 2 never received"
[[nodiscard]] std::string amount_words(const ExchangeCount& count);

// Drops the tables of queries whose values do not distinguish the runs, except those of the queries in `asked`.
void drop_silent_values(Explanation& explanation, const std::vector<std::string>& asked);

// fresh_functions(): the suspects that only failing runs enter. lost_functions(): those that only correct runs enter.
// Both return the best first, at most `most`. A caller of these functions takes a different branch than in the runs of
// the other side.
[[nodiscard]] std::vector<std::string> fresh_functions(const Explanation& explanation, std::size_t most);
[[nodiscard]] std::vector<std::string> lost_functions(const Explanation& explanation, std::size_t most);
[[nodiscard]] std::vector<Aftermath> aftermaths_of(const Input& input);
// The functions whose callers are to be queried: first those that threads entered next after failed calls, then those
// that only failing runs enter.
[[nodiscard]] std::vector<std::string> caller_queries(const Explanation& explanation, std::size_t most);
// Marks each function that continued after a failed call, and each function that passed the error on to it.
void add_handlers(Explanation& explanation, const std::vector<Call>& calls);
// The time from the start of the workload to the first fault; nothing if no fault fired.
[[nodiscard]] std::optional<std::int64_t> first_fault_ns(const schedule::RunResult& result);
// The name of the calling function in the text of a value of "store:callers". Example: "save" for "go statement in save
// (store.c:71), inlined into main (main.c:9)".
[[nodiscard]] std::string caller_in(std::string_view text);
// The calls in a run with queries about callers, from `since_ns` after the start of the workload on. `queries`: the
// texts of the queries ("store:callers"), by number.
[[nodiscard]] std::vector<Call> calls_of(const schedule::RunResult& result, const std::vector<std::string>& queries,
                                         std::int64_t since_ns);
// Makes suspects of the callers of suspects that only failing runs enter. Marks the callers that made the decision,
// that is, those that are also entered without the bug. Returns the first call about which a caller decided; empty if
// there is none.
std::vector<Call> add_callers(Explanation& explanation, std::vector<Call> calls);
// Like add_callers(), for functions that failing runs lack. `calls` are the calls of a correct run.
void add_lost_callers(Explanation& explanation, std::vector<Call> calls);
// It is unknown where a clock fault took effect, because the clock may be read in a function further out on the stack
// than the one that decides by it. Therefore the callers of the deciding functions are queried. Returns the deciding
// functions among `decided` on nodes whose clock the schedule sets.
[[nodiscard]] std::vector<std::string> decided_by_clock(const schedule::Schedule& schedule,
                                                        const std::vector<Call>& decided);
// Makes suspects of the callers of `functions`. If no caller of a function is known, the function itself becomes a
// suspect.
void add_outer_callers(Explanation& explanation, const std::vector<std::string>& functions, std::vector<Call> calls);
// A sentence such as "enters store only after n2: enters take".
[[nodiscard]] std::string order_words(const Input& input, const Swapped& swap);

// The functions that are to be queried next, at most `most`, without those in `asked`. First the suspects, best first;
// then functions that only one side calls; then functions on the stacks; then functions entered between the fault and
// the symptom. The last group matters if a node acts on an old value, because the runs may then differ in nothing else.
// Functions that only one side enters come after all others, because their values cannot be compared.
[[nodiscard]] std::vector<std::string> next_functions(const Explanation& explanation,
                                                      const std::set<std::string>& asked, std::size_t most);

// The functions whose results are to be queried next, without those in `asked`: first those on the stacks that the
// faults hit, innermost first, because the error passes through them; then the suspects and the functions entered
// between the fault and the symptom.
[[nodiscard]] std::vector<std::string> result_functions(const Explanation& explanation,
                                                        const std::set<std::string>& asked);

// The parts of a story, each in one sentence; "" if a part is not known.
struct InShort {
  std::string fault, received, first_wrong, symptom;
  std::vector<std::string> consequences;
  std::string why_no_first_wrong;
};
[[nodiscard]] InShort in_short(const Explanation& explanation);

// True for code that only relays the application's calls, such as the C library or the runtime of a language.
[[nodiscard]] bool is_library(const schedule::Frame& frame);

// True for a function of the application that has a name and was not generated by a compiler.
[[nodiscard]] bool is_applications(const schedule::Frame& frame);

// True if the stack's thread is in a named function of the application.
[[nodiscard]] bool in_application(const schedule::Stack& stack);

}  // namespace rose::explain
