// The search for the schedule that reproduces a failure, given traces, logs and a profile. Pure: it makes runs through
// Runner and reports its progress through Progress. The method is that of ROSE (EuroSys'26), section 4.4, with the
// feedback of ANDURIL (SOSP'24), section 5. Its parts: evidence (what production recorded), survey (what the test
// deployment does), candidates (faults with a weight), moves (which propose trials), the search itself (runs the best
// trial of all moves and learns from its outcome), confirmation and simplification. weights.h has the constants that
// these parts share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "diagnose/code.h"
#include "evidence/discards.h"
#include "evidence/evidence.h"
#include "logs/evidence.h"
#include "profile/profile.h"
#include "schedule/outcome.h"
#include "schedule/rate.h"
#include "schedule/schedule.h"
#include "weights/features.h"

namespace rose::diagnose {

// The search uses the types of the evidence and the constants of the weights throughout.
using namespace evidence;
using namespace weights;

// When a search ends after a schedule has reproduced the bug: at once, when it is decided whether its replay rate
// reaches the target, or when the schedule has also been minimised.
enum class StopAfter { found, confirmed, minimised };

struct Inputs : evidence::Evidence {
  bool simplify = true;  // make the found schedule simpler before it is reported
  StopAfter stop_after = StopAfter::minimised;
  bool power = false;                    // the machine of the runs can simulate the power loss of a node's disk
  std::set<schedule::FaultKind> limits;  // kinds of limits that this machine can set
  bool overrides = false;                // this machine's kernel can make calls fail in nodes that rose does not start
  CodeMap* code = nullptr;               // places inside functions, for level 3; may be nullptr
  // --rule-out: ids of candidates and rivals that, as the user has checked, did not happen
  std::set<std::string> ruled_out;
};

// A part of the method that --without can switch off, to measure what it contributes.
struct Part {
  enum class Of {
    evidence,   // a source of evidence
    rank,       // a rule that changes the rank of a candidate
    generator,  // a kind of trials
    search,     // how trials are chosen and judged
  };
  std::string_view name;
  std::string_view what;
  Of of = Of::search;
};
[[nodiscard]] std::string_view part_name(Part::Of of);
// All parts; Inputs::without has the names of those that are switched off.
[[nodiscard]] const std::vector<Part>& parts();

// A fault that the evidence suggests.
struct Candidate {
  int rank = 0;  // 1 is the most likely
  // Derived from the fault itself, so it is the same in every diagnosis of this evidence. Set by make_plan().
  std::string id;
  schedule::FaultKind kind = schedule::FaultKind::syscall;
  std::string node;            // name in the deployment
  std::string syscall, error;  // "" where they do not apply
  std::string path, peer;      // patterns
  std::uint64_t count = 0;     // number of its events
  std::int64_t first_ts = 0;
  std::string why;                            // for people: the evidence for the candidate
  schedule::Fault fault;                      // the fault as level 1 injects it
  bool symptom = false;                       // explained by an earlier fault
  bool perhaps_symptom = false;               // the end of a process may explain it, but need not
  std::vector<schedule::Fault> alternatives;  // other shapes of the same fault, tried after `fault`
  // if the fault had not ended when the dump was written: the other duration to try (to the end of the run, or as
  // observed)
  std::optional<schedule::Fault> other_length;
  std::int64_t last_ts = 0;         // its last event; for pauses and partitions, their end
  std::vector<std::int64_t> again;  // SCF: the times at which the call began to fail in later incidents, ascending
  // if logs show only a time span: the fault happened between this and first_ts; 0: at first_ts
  std::int64_t since_ts = 0;
  bool profiled = false;  // the profile also contains the failure, but far more rarely
  // SCF: 0 disk or resource error, 1 other, 2 everyday, 3 occurs in healthy programs all the time
  int ordinariness = 0;
  bool own_end = false;        // PS: the process ended itself
  bool partly = false;         // PS: other processes of the node continued
  bool stepped = false;        // clock: the clock was set at first_ts; false: it was wrong all the time
  bool complained = false;     // clock: a program reports that it is wrong
  bool blocked = false;        // PS: the process waited for a disk
  bool out_of_memory = false;  // PS: the kernel's OOM killer ended the process
  bool foreign = false;        // SCF, PS: the test deployment does not run the program of the process
  // SCF: the failure always occurs right after a start of its node, or after a more serious failure
  bool follows = false;
  double usual = 1;      // factor; below 1: such an end, pause or failure occurs often without harm
  bool first = false;    // a disk or resource error that precedes all other faults
  bool fatal = false;    // SCF: the node ended itself right after the call
  double plainness = 1;  // 0..1: how clearly the evidence states it; 1: recorded by a tracer
  Known known = Known::seen;
  bool assumed = false;            // no evidence mentions it; it is only a possible explanation
  double weight = 0;               // probability that it belongs to the cause; the weights of a plan add up to 1
  std::vector<std::string> nodes;  // all nodes that the fault affects; set by make_plan()
  Features features{};             // the basis of its weight and rank
};

// A node whose main process ended in the dump and started again.
struct RestartSeen {
  std::string node;
  std::int64_t ts = 0;    // time of the first end
  int signal = 0;         // the signal that last ended the process; 0: the process exited
  int status = 0;         // if it exited: its exit status
  std::size_t after = 0;  // number of candidates for calls that failed after the first restart of any node
};

struct Plan {
  std::vector<Candidate> candidates;  // in the paper's order; by_rank() gives the order of the ranks
  std::vector<Observable> observables;
  std::vector<Discarded> discarded;
  std::vector<schedule::Schedule> schedules;       // the trials of level 1, most likely first
  std::vector<std::string> schedule_whys;          // for each schedule, why it is tried
  std::uint64_t failures = 0;                      // number of SCF, ND and PS events in the evidence
  double discarded_share = 0;                      // share of `failures` that was discarded
  std::vector<std::string> notes;                  // hosts that could not be matched, lost events, ...
  std::vector<std::string> warnings;               // problems that will make runs useless, each with a remedy
  std::vector<std::vector<std::string>> replicas;  // groups of nodes; a host may be any node of its group
  std::int64_t begin_ts = 0;                       // the time span of the merged dumps
  std::int64_t end_ts = 0;
  // start of the workload; 0: unknown, so the first fault is tried at several points of the workload
  std::int64_t workload_ts = 0;
  std::vector<RestartSeen> restarts;
};

// Applies --without before logs are added: removes the evidence that --without names, which is the profile or kinds of
// events in dumps.
void leave_out_evidence(Inputs& inputs);
// Adds what logs report to `inputs`, which may already contain the evidence of dumps. `control`: see
// evidence::add_logs().
void add_logs(Inputs& inputs, const logs::Evidence& evidence, const trace::Trace* control);
// Finds the candidates, and plans the trials of level 1. `workload_ns`: the duration of the workload in the test
// deployment; 0: not known yet. `restarts`: failures that follow restarts in the test deployment; nullptr: use those in
// the profile.
[[nodiscard]] Result<Plan> make_plan(const Inputs& inputs, std::int64_t workload_ns = 0,
                                     const profile::Restarts* restarts = nullptr);
// The plan's candidates by rank, the most likely first.
[[nodiscard]] std::vector<const Candidate*> by_rank(const Plan& plan);

using schedule::Decides;

class Runner {
 public:
  virtual ~Runner() = default;
  // Makes one run. An error of kind `input` or `environment` means that this schedule cannot be run here (for example,
  // the build lacks a function); other errors end the diagnosis. A problem of a single run is an inconclusive
  // RunResult.
  [[nodiscard]] virtual Result<schedule::RunResult> run(const schedule::Schedule& schedule) = 0;
  // Makes one run of each schedule, in parallel if the runner can. Returns one result for each, in the same order. Once
  // `decides(i, result)` is true for the result of the ith schedule, the runner may stop the runs of later schedules,
  // or not start them; their results then have `stopped` set. `decides` may be empty, and several threads may call it.
  [[nodiscard]] virtual std::vector<Result<schedule::RunResult>> run_all(
      const std::vector<const schedule::Schedule*>& schedules, const Decides& decides) {
    static_cast<void>(decides);
    std::vector<Result<schedule::RunResult>> results;
    for (const schedule::Schedule* schedule : schedules) results.push_back(run(*schedule));
    return results;
  }
  // The number of runs to request at once if `jobs` in [diagnose] is not a number. May change between calls.
  [[nodiscard]] virtual int side_by_side() const { return 1; }
  // The number of runs of this schedule to request at once, if several are needed: at least side_by_side().
  [[nodiscard]] virtual int repeats(const schedule::Schedule& schedule) const {
    static_cast<void>(schedule);
    return side_by_side();
  }
  // The number of runs that the runner can make before the search requests them; 0: none.
  [[nodiscard]] virtual int room() const { return 0; }
  // The runs that the search will probably request next, most likely first. Called before run() or run_all().
  virtual void expect(std::vector<schedule::Schedule> next) { static_cast<void>(next); }
  // Applies to the runs that are requested from now on: the runner may end a run as inconclusive if its workload takes
  // longer than this. 0: it waits until the workload ends.
  virtual void wait_at_most(std::int64_t workload_ns) { static_cast<void>(workload_ns); }
};

struct Tried {
  schedule::Schedule schedule;
  int level = 1;
  schedule::Tally tally;
  std::string note;                      // for people: why it was tried, and the outcomes
  std::set<std::string> brought_back{};  // observables of the evidence that appeared in runs that reproduced the bug
  bool traced = false;  // some of these runs were traced; untraced runs cannot show the observables of dumps
  std::int64_t longest_hit_ns = 0;  // longest duration of the workload in runs that reproduced the bug; 0: unknown
};

// Another hypothesis that also reproduces the failure. Runs cannot decide whether it or the reported hypothesis
// happened in production.
struct Rival {
  std::string id;  // the id of its candidate, or the ids of several joined by '+'; the argument of --rule-out
  schedule::Schedule schedule;
  schedule::Tally tally;
  bool certain = false;          // the kernel recorded all its faults in production (is_certain())
  std::string would_have_shown;  // for people: the traces that it would have left in production
  std::string test;              // for people: one observation that shows whether it happened
};

// A trial that the search would have made next if it had not used up its runs.
struct NotTried {
  schedule::Schedule schedule;
  int level = 1;
  std::string why;
};

// Remarks on the schedule that was found, one or more sentences each.
struct Remarks {
  std::vector<std::string> places;   // the code at the offsets that the schedule names
  std::string rate;                  // how often the schedule reproduces the bug
  std::vector<std::string> doubts;   // reasons to doubt the result
  std::vector<std::string> simpler;  // what minimisation removed
};

struct Diagnosis {
  schedule::Verdict verdict = schedule::Verdict::inconclusive;
  bool target_reached = false;
  std::optional<std::size_t> first;  // index into `tried` of the schedule that reproduced the bug first
  bool unconfirmed = false;          // the search ended at the first reproduction, as requested, so the rate is unknown
  int level = 0;
  int schedules = 0;      // number of schedules tried until the found schedule was confirmed, including the found one
  int runs = 0;           // all runs, including those without faults
  int control_runs = 0;   // of `runs`: those in which no fault had an effect
  int control_hits = 0;   // of control_runs: those in which the bug occurred
  int confirm_runs = 0;   // of `runs`: those that screened the found schedule
  int simplify_runs = 0;  // of `runs`: those that minimised it and tried its rivals
  int rate_runs = 0;  // of `runs`: those that only measured the rate of the reported schedule and influenced no choice
  schedule::Tally tested;                    // outcomes of confirm_runs
  schedule::Tally tally;                     // outcomes of rate_runs, or of confirm_runs if there are no rate_runs
  std::pair<double, double> interval{0, 1};  // 95 % confidence interval of the rate of `tally`
  std::optional<schedule::Schedule> found;   // the best schedule, even if it is below the target
  Remarks remarks;
  std::string reason;  // for people: one sentence that explains the verdict
  // observables of the logs that also occur in runs in which no fault had an effect
  std::set<std::string> without_faults;
  bool interrupted = false;      // the user ended the search; the result is what was known by then
  std::int64_t workload_ns = 0;  // duration of the workload without faults; 0: unknown
  Plan plan;
  std::vector<Tried> tried;
  std::vector<Rival> rivals;          // the certain ones first, then by rate, then by weight
  std::set<std::string> usual_signs;  // observables in traces (signs_of()) of runs in which no fault had an effect
  std::vector<NotTried> next;         // if the target was not reached: the next trials, most likely first
};

// For people: what must happen, in which order and on which node, with the remarks. Several lines; "" if nothing was
// found.
[[nodiscard]] std::string in_words(const Diagnosis& diagnosis);
// For people: what the schedule does. One or more lines.
[[nodiscard]] std::string in_words(const Tried& tried);

struct Progress {
  int level = 1;
  int schedules = 0;  // tried so far
  int runs = 0;
  int runs_left = 0;  // an upper limit
  double best_rate = 0;
  double testing_rate = 0;       // rate so far of the schedule whose rate is being measured; 0: none
  double seconds_left = 0;       // an upper limit, from the duration of the runs so far; 0: unknown
  const Tried* first = nullptr;  // the schedule that reproduced the bug first; nullptr: none so far
  // set once a schedule is confirmed; the remaining runs only simplify it and measure its rate
  const Diagnosis* found = nullptr;
  const std::vector<std::string>* warnings = nullptr;  // of the plan; nullptr: there is no plan yet
  std::string doing;  // "trying: fail openat(*/snapshot.*) on n2 with EIO", "confirming 3/10"
};

[[nodiscard]] Result<Diagnosis> diagnose(const Inputs& inputs, Runner& runner,
                                         const std::function<void(const Progress&)>& progress);

}  // namespace rose::diagnose
