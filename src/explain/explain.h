// From runs of a schedule that reproduces, and correct runs beside them, to what the program made of the fault:
// suspects, and the story from the fault to the symptom. Pure: makes no runs, reads no files.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
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
  nothing_found,   // the bug showed, and failing runs differ from correct ones no more than equal runs do
  not_reproduced,  // the bug did not show
  inconclusive,    // it could not be seen whether it shows, or it shows without faults
};
[[nodiscard]] std::string_view verdict_name(Verdict verdict);  // "nothing-found"

struct Suspect {
  std::string function;
  std::string file;  // "" unknown
  int line = 0;      // 0 unknown
  std::string node;  // "": several
  Features features;
  double score = 0;  // probability that it is the one, among the suspects: see model.h
  std::string why;
  bool fresh = false;  // all failing runs enter it after the fault, and no others
};

// That a function was called, in a failing run.
struct Call {
  std::string function, caller;
  std::string node;
  std::string file;  // where it is called; "" unknown
  int line = 0;      // 0 unknown
};

// A difference in words.
struct Told {
  std::string node, words;
  bool missing = false, clean = false, only_bug = false;
  double failing = 0, sound = 0, near = 0, weight = 0;
  std::int64_t after_ns = 0;
  std::string callee;  // that a function calls there, or no longer
};

struct StoryLine {
  enum class Kind { fault, thread, difference, missing, message, process, symptom };
  Kind kind = Kind::difference;
  std::int64_t ts_ns = 0;  // wall clock, in the run whose story is reported
  std::int64_t at_ns = 0;  // since the workload began
  std::string node, text;
  std::string evidence;      // "event 412", "n1/stderr.log:17", "3 of 3 failing runs, 0 of 3 correct ones"
  bool first_wrong = false;  // the first difference that all failing runs have and no correct run
};

// What a function is known as beside its name.
struct Place {
  std::string file;
  int line = 0;
};

// What the runs were made for, and their facts.
struct Input {
  schedule::Schedule schedule;
  std::vector<Run> runs;  // condensed
  Kinds kinds;
  std::function<std::string(std::uint32_t)> message;  // the words of a template
  // The run whose story is reported: one that failed, with its trace and lines. Its condensed form is runs[story_run].
  schedule::RunResult story;
  std::vector<LogLine> lines;
  std::size_t story_run = 0;
  std::string run_dir;      // where that run was, to shorten its paths
  std::string oracle_said;  // its last lines in that run
  std::string workload_ended;
  std::vector<Question> questions;                                                   // that the runs were asked
  std::function<Place(const std::string& node, const std::string& function)> place;  // may be empty
  std::vector<std::string> unseen;  // why functions of nodes can't be seen, and what to do
  std::vector<std::string> limits;  // what else is not known
};

// How much one node sent another in the runs of one side, from the fault on.
struct ExchangeCount {
  std::uint64_t least = 0, most = 0;  // messages a run
  std::uint64_t least_bytes = 0, most_bytes = 0;
  std::uint64_t untaken = 0;  // at most, of a run: the other node never had them
};
struct ExchangeTable {
  std::string from, to;
  std::uint16_t port = 0;  // of the service
  bool answer = false;     // the service sends it
  ExchangeCount failing, sound, near;
  std::string differs;  // in words; "": no more than equal runs do
};

// One round of questions that explain asked by itself.
struct Round {
  std::vector<std::string> functions;    // that it asked about
  std::size_t asked = 0,
              differing = 0;  // questions; those that distinguish failing from correct runs, and were not known to
  int runs = 0;
  double seconds = 0;
  double share = 0;  // of the time of its runs, that reading values took
};

struct Explanation {
  Verdict verdict = Verdict::inconclusive;
  std::string reason;               // one sentence
  std::string fault;                // id of the root fault: the first that fired
  std::vector<std::string> faults;  // in words
  struct StackOf {
    std::string fault;
    schedule::Stack stack;
    std::size_t others = 0;  // threads that it hit, too, in no function of the application: they only waited
  };
  std::vector<StackOf> stacks;
  std::vector<Suspect> suspects;  // best first
  std::vector<Told> differences;  // heaviest first
  std::vector<StoryLine> story;
  std::vector<std::string> path;  // functions that the run whose story is reported enters from the fault to the
                                  // symptom, the nearest to either first
  std::vector<Round> rounds;                 // of --deepen
  std::vector<RecordedDivergence> recorded;  // where recordings of failing and correct runs part, earliest first
  std::vector<ValueTable> values;            // what was asked for, in the order of the questions
  std::vector<ExchangeTable> exchanges;      // between nodes; those that differ first
  std::vector<std::string> limits;           // what could not be determined, and why
  std::size_t failing = 0, sound = 0, near = 0, shorter = 0;  // runs that were compared
  double chance = 1;
  std::string symptom;
};

inline constexpr std::size_t kMostSuspects = 60;
inline constexpr std::size_t kMostTold = 60;
inline constexpr std::size_t kMostStoryLines = 16;

// Explains at least one failing run. Aligns the runs first.
[[nodiscard]] Explanation explain(Input& input);

// Whether all that differs may be noise, and a few more runs of each side could tell. Of at least one failing run.
// Aligns the runs, and doubts kinds of steps.
[[nodiscard]] bool needs_more_runs(Input& input);

// The parts, in the order in which explain() uses them.
[[nodiscard]] std::vector<Suspect> suspects_of(const Input& input, const Comparison& comparison);
[[nodiscard]] std::vector<StoryLine> story_of(const Input& input, const Comparison& comparison);

[[nodiscard]] std::vector<std::string> path_of(const Input& input);

// After align(): of as long a time behind the cut in all runs. None of nodes of which not all messages are known.
[[nodiscard]] std::vector<ExchangeTable> exchange_tables(const std::vector<Run>& runs);
// "12 to 14 messages, 300 to 340 bytes, up to 2 never taken"
[[nodiscard]] std::string amount_words(const ExchangeCount& count);

// Leaves out tables of values that do not tell the runs apart, but for those that `asked` has.
void drop_silent_values(Explanation& explanation, const std::vector<std::string>& asked);

// Suspects that only failing runs enter, best first, at most `most`: the caller of one takes another way than in
// correct runs.
[[nodiscard]] std::vector<std::string> fresh_functions(const Explanation& explanation, std::size_t most);
// Which function called which from the first fault on, in a run that was asked about callers. `queries`:
// "store:callers", by question.
[[nodiscard]] std::vector<Call> calls_of(const schedule::RunResult& result, const std::vector<std::string>& queries);
// Makes suspects of the callers of new suspects, and notes which of them made the decision: callers that are also
// entered without the bug. Returns the calls that follow from the first decision.
std::vector<Call> add_callers(Explanation& explanation, std::vector<Call> calls);
// A wrong clock arrives at no step: it may be read further out than where it was decided with. Whose callers to ask
// for, then: of `decided` those on nodes whose clock the schedule sets.
[[nodiscard]] std::vector<std::string> decided_by_clock(const schedule::Schedule& schedule,
                                                        const std::vector<Call>& decided);
// Makes suspects of the callers of these functions.
void add_outer_callers(Explanation& explanation, const std::vector<std::string>& functions, std::vector<Call> calls);
// "enters store only behind n2: enters take"
[[nodiscard]] std::string order_words(const Input& input, const Swapped& swap);

// Which functions to ask about next: suspects, best first, then those that are called only on one side, then those on
// the stacks, then those that are entered on the way from the fault to the symptom: where a node acts upon an old
// value, runs may differ in nothing else. None that is in `asked`, at most `most`.
[[nodiscard]] std::vector<std::string> next_functions(const Explanation& explanation,
                                                      const std::set<std::string>& asked, std::size_t most);

// The parts of a story in one sentence each; "" where one is not known.
struct InShort {
  std::string fault, received, first_wrong, symptom;
  std::vector<std::string> consequences;
  std::string why_no_first_wrong;
};
[[nodiscard]] InShort in_short(const Explanation& explanation);

// Code that only carries the application's calls: the C library, the runtime of a language.
[[nodiscard]] bool is_library(const schedule::Frame& frame);

// A function of the application that has a name, and that no compiler made.
[[nodiscard]] bool is_applications(const schedule::Frame& frame);

// Whether its thread is in a function of the application that has a name.
[[nodiscard]] bool in_application(const schedule::Stack& stack);

}  // namespace rose::explain
