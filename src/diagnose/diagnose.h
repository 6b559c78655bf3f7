// The search: from traces and a profile to the schedule that reproduces the failure. Pure: runs are made behind Runner,
// progress is reported through Progress. The method is ROSE (EuroSys'26), section 4.4, with the feedback of ANDURIL
// (SOSP'24), section 5. Its parts: evidence (what production recorded), survey (what the test deployment does),
// candidates (faults with a weight), moves (which propose trials), the search itself (picks the best trial of all moves
// and learns from every run), confirmation, simplification. weights.h has the numbers that they share.
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
#include "diagnose/features.h"
#include "diagnose/logs/throw_sites.h"
#include "profile/profile.h"
#include "schedule/outcome.h"
#include "schedule/rate.h"
#include "schedule/schedule.h"
#include "trace/event.h"

namespace rose::diagnose {

// How a fault is known: the kernel recorded it, a message states it, or it is inferred from a gap, a silence, a restart
// or a failure that it caused.
enum class Known { seen, stated, inferred };
[[nodiscard]] std::string_view known_name(Known known);

// Something that the evidence contains and fault-free runs do not: the right schedule brings it back.
struct Observable {
  std::string key;  // in the form of signs_of() for traces, of RunResult::shown for logs
  std::string node;
  std::int64_t first_ts = 0;
  std::string words{};  // for a message that reports a problem: its position in the log, and its text; else ""
};

// Details of events that were made from log messages.
struct LogEvidence {
  struct OfEvent {
    double weight = 0;          // 0..1: how clearly the logs state it
    std::string words;          // which message
    std::int64_t since_ns = 0;  // the event happened between this time and its own; 0: at its own time
    bool guessed = false;       // no message mentions it
    bool inferred = false;      // it follows from a gap, a silence or a restart, or the message does not name it
    std::string by{};           // of a silence: the node whose log tells of it
  };
  std::size_t trace = 0;                  // index into Inputs::traces
  std::map<std::size_t, OfEvent> events;  // by index
};

// An exception that a log reports.
struct ReportedException {
  std::string node;                        // of the deployment
  std::int64_t first_ts = 0, last_ts = 0;  // of its messages
  std::uint64_t count = 0;
  double weight = 0;             // 0..1: how clearly the logs state it
  std::string words;             // which message, and which frame of its stack
  std::vector<ThrowSite> sites;  // where it can be thrown; not empty
  std::uint64_t visits = 0;      // of the first site's method until then, by the run without faults; 0: not known
};

// A clock step that the times of a log reveal.
struct ReportedClockStep {
  std::string node;              // of the deployment
  std::int64_t at_ns = 0;        // on the clock as it was before
  std::int64_t duration_ns = 0;  // until it was set back; 0: not seen
  std::int64_t change_ns = 0;    // negative: back
  double weight = 0;             // 0..1
  std::string words;
  bool all_along = false;   // reported as wrong at that time; may have been wrong from the beginning
  bool either_way = false;  // the step may also be by the same amount in the other direction
  Known known = Known::stated;
};

// When a search may stop after a schedule has reproduced the bug for the first time: at once, when its replay rate is
// decided, or when the schedule has also been minimised.
enum class StopAfter { found, confirmed, minimised };

// An exhausted or slow resource that logs report without naming a call and a file.
struct ReportedLimit {
  schedule::FaultKind kind = schedule::FaultKind::disk_full;  // or disk_slow, descriptors
  std::string node;                                           // of the deployment
  std::int64_t at_ns = 0;                                     // wall clock
  std::int64_t took_ns = 0;                                   // disk_slow: a call that waited
  std::uint64_t count = 1;                                    // messages
  double weight = 0;                                          // 0..1
  std::string words;                                          // which message
};

struct Inputs {
  std::vector<trace::Trace> traces;
  std::optional<profile::Profile> profile;
  const config::Config* config = nullptr;           // nodes and [diagnose]
  std::map<std::string, std::string> host_to_node;  // --map
  bool simplify = true;                             // make the found schedule simpler before it is reported
  StopAfter stop_after = StopAfter::minimised;
  bool power = false;                     // where the runs are made, nodes' disks can lose their power
  std::set<schedule::FaultKind> limits;   // ... these kinds of limits can be set,
  bool overrides = false;                 // and the kernel can answer calls of nodes that rose does not start
  CodeMap* code = nullptr;                // the nodes' code, for level 3; may be nullptr
  std::vector<LogEvidence> log_evidence;  // these five come from logs: from_logs.h
  std::vector<ReportedException> exceptions;
  std::vector<ReportedClockStep> clock_steps;
  std::vector<ReportedLimit> reported_limits;
  std::vector<Observable> log_observables;
  std::vector<std::string> log_notes;
  std::set<std::string> ruled_out;  // ids of candidates and rivals that did not happen, as the user has checked
  std::set<std::string> without;    // parts of the search that are left out, to see what they are worth

  // There is no dump.
  [[nodiscard]] bool only_logs() const { return !log_evidence.empty() && log_evidence.size() == traces.size(); }
};

// A part of the method that --without can switch off.
struct Part {
  enum class Of {
    evidence,   // a source of evidence
    rank,       // a rule that changes the rank of a candidate
    generator,  // what makes trials
    search,     // how trials are chosen and judged
  };
  std::string_view name;
  std::string_view what;
  Of of = Of::search;
};
[[nodiscard]] std::string_view part_name(Part::Of of);
// All parts that Inputs::without may name.
[[nodiscard]] const std::vector<Part>& parts();

// A fault that the dump suggests.
struct Candidate {
  int rank = 0;  // 1 is the likeliest
  // derived from the fault itself, so it is the same in every diagnosis of this evidence; set by make_plan()
  std::string id;
  schedule::FaultKind kind = schedule::FaultKind::syscall;
  std::string node;            // of the deployment
  std::string syscall, error;  // "" where they do not apply
  std::string path, peer;      // patterns
  std::uint64_t count = 0;     // events it stands for
  std::int64_t first_ts = 0;
  std::string why;                            // for people: why it is a candidate and why here
  schedule::Fault fault;                      // level 1's guess
  bool symptom = false;                       // explained by an earlier fault
  bool perhaps_symptom = false;               // the end of one of the node's processes may explain it
  std::vector<schedule::Fault> alternatives;  // other shapes of the same fault, tried after `fault`
  std::optional<schedule::Fault>
      // the fault still lasted when the dump was written: the alternative duration (to the end of the run, or as long
      // as observed)
      other_length;
  std::int64_t last_ts = 0;         // of its events; for pauses and partitions, their end
  std::vector<std::int64_t> again;  // SCF: when further incidents of it began, by time
  std::int64_t since_ts = 0;        // logs show only that it happened between this and first_ts; 0: at first_ts
  bool profiled = false;            // the profile has it too, but far rarer
  int ordinariness = 0;             // SCF: 0 disk and resource errors, 1 others, 2 everyday ones, 3 usual noise
  bool own_end = false;             // PS: the process ended itself
  bool partly = false;              // PS: other processes of its node continued
  bool stepped = false;             // clock: it was set at first_ts; else it was wrong all the time
  bool complained = false;          // clock: a program says that it is wrong
  bool blocked = false;             // PS: it waited for a disk
  bool out_of_memory = false;       // PS: the kernel ended it for its memory
  bool foreign = false;             // SCF, PS: of processes whose program the test deployment does not run
  bool follows = false;             // SCF: it always comes right after a start of its node, or a worse failure
  double usual = 1;                 // less: it ends, stands still or fails like that all the time
  bool first = false;               // a disk error before all other faults
  bool fatal = false;               // SCF: its node ended itself right after it
  double plainness = 1;             // how clearly the evidence states it; less than 1 if only logs do
  bool guessed = false;             // no log mentions it: it is only close in time to logged events
  Known known = Known::seen;
  double weight = 0;               // probability that it is (part of) the cause; those of a plan add up to one
  std::vector<std::string> nodes;  // all nodes that the fault affects; set by make_plan()
  Features features{};             // what its weight and rank are based on
};

struct Discarded {
  std::string why;
  std::uint64_t events = 0;
};

// A node whose main process ended in the dump and started again.
struct RestartSeen {
  std::string node;
  std::int64_t ts = 0;    // the first end
  int signal = 0;         // that ended it last; 0: it exited
  int status = 0;         // then
  std::size_t after = 0;  // number of candidates that are failed calls, all of them after the first restart of the dump
};

struct Plan {
  std::vector<Candidate> candidates;  // in the paper's order: see by_rank()
  std::vector<Observable> observables;
  std::vector<Discarded> discarded;
  std::vector<schedule::Schedule> schedules;       // what level 1 would try, likeliest first
  std::vector<std::string> schedule_whys;          // one per schedule: why it is tried
  std::uint64_t failures = 0;                      // SCF, ND and PS events considered
  double discarded_share = 0;                      // of `failures`
  std::vector<std::string> notes;                  // hosts that could not be matched, lost events, ...
  std::vector<std::string> warnings;               // what will make runs useless, and what to do about it
  std::vector<std::vector<std::string>> replicas;  // groups of nodes; a production host may be any node of its group
  std::int64_t begin_ts = 0;                       // of the merged dumps
  std::int64_t end_ts = 0;
  std::int64_t workload_ts = 0;  // 0: unknown; the first fault is tried at several points
  std::vector<RestartSeen> restarts;
};

// Applies --without before logs are added: drops the profile, and the dumps' events of sources that are left out.
void leave_out_evidence(Inputs& inputs);
// `workload_ns`: how long the workload takes in the test deployment, once a run has shown it; 0: unknown. `restarts`:
// what follows restarts there; nullptr: use the profile's.
[[nodiscard]] Result<Plan> make_plan(const Inputs& inputs, std::int64_t workload_ns = 0,
                                     const profile::Restarts* restarts = nullptr);
// The plan's candidates, most likely first; those that an earlier fault explains come last.
[[nodiscard]] std::vector<const Candidate*> by_rank(const Plan& plan);

using Decides = std::function<bool(std::size_t index, const schedule::RunResult& result)>;

class Runner {
 public:
  virtual ~Runner() = default;
  // One run. An error of kind `input` or `environment` says that this schedule can't be run here (a function that the
  // build lacks), others end the diagnosis; trouble of one run is an inconclusive RunResult.
  [[nodiscard]] virtual Result<schedule::RunResult> run(const schedule::Schedule& schedule) = 0;
  // One run of each, in parallel where the runner can: one result for each schedule, in their order. Once
  // `decides(i, result)` is true of the ith result, the runner may stop the runs of later schedules, or not begin them;
  // their results then have ended_early. Several threads may call it. It may be empty.
  [[nodiscard]] virtual std::vector<Result<schedule::RunResult>> run_all(
      const std::vector<const schedule::Schedule*>& schedules, const Decides& decides) {
    static_cast<void>(decides);
    std::vector<Result<schedule::RunResult>> results;
    for (const schedule::Schedule* schedule : schedules) results.push_back(run(*schedule));
    return results;
  }
  // The number of runs that are worth asking for at once if `jobs` in [diagnose] is not a number. It may change from
  // call to call.
  [[nodiscard]] virtual int side_by_side() const { return 1; }
  // How many runs the runner can make ahead of the search's requests; 0: none.
  [[nodiscard]] virtual int room() const { return 0; }
  // The runs that the search will probably request next, most likely first. Called before run() or run_all().
  virtual void expect(std::vector<schedule::Schedule> next) { static_cast<void>(next); }
};

struct Tried {
  schedule::Schedule schedule;
  int level = 1;
  schedule::Tally tally;
  std::string note;                      // why it was tried and what it showed
  std::set<std::string> brought_back{};  // observables of the evidence that appeared in runs that reproduced the bug
  bool traced = false;                   // some of these runs were traced, so observables of dumps could occur again
  std::int64_t longest_hit_ns = 0;       // of those runs' workloads; 0: not known
};

// Another hypothesis that reproduces the failure as well as the reported one: runs cannot decide which of them happened
// in production.
struct Rival {
  std::string id;  // the id of its candidate, or the ids of several joined by '+'; the argument of --rule-out
  schedule::Schedule schedule;
  schedule::Tally tally;
  bool certain = false;          // the kernel saw all of it happen in production
  std::string would_have_shown;  // traces that it would have left in production
  std::string test;              // one observation that tells whether it happened
};

// What a search that has used up its runs would have tried next.
struct NotTried {
  schedule::Schedule schedule;
  int level = 1;
  std::string why;
};

// Remarks on the schedule that was found, one or more sentences each.
struct Remarks {
  std::vector<std::string> places;   // the code at the offsets that the schedule names
  std::string rate;                  // how often the bug then occurs
  std::vector<std::string> doubts;   // what speaks against it
  std::vector<std::string> simpler;  // what minimisation removed
};

struct Diagnosis {
  schedule::Verdict verdict = schedule::Verdict::inconclusive;
  bool target_reached = false;
  std::optional<std::size_t> first;  // index into `tried`: the schedule that reproduced the bug first
  bool unconfirmed = false;          // the search ended at the first reproduction, as asked: its rate is not known
  int level = 0;
  int schedules = 0;       // tried before the found one was confirmed, itself included
  int runs = 0;            // all of them, those without faults included
  int control_runs = 0;    // of `runs`: without faults
  int control_hits = 0;    // of those: the bug occurred
  int confirm_runs = 0;    // of `runs`: of the found schedule, until it was worth minimising, or given up
  int simplify_runs = 0;   // of `runs`: made then, to make it simpler and to try its rivals
  int rate_runs = 0;       // of `runs`: of the schedule that is reported, for its rate alone: they chose nothing
  schedule::Tally tested;  // of confirm_runs
  schedule::Tally tally;   // of rate_runs; of confirm_runs where none of those was made
  std::pair<double, double> interval{0, 1};  // of that rate, 95 %
  std::optional<schedule::Schedule> found;   // the best, also below the target
  Remarks remarks;
  std::string reason;                    // one sentence, also when nothing was found
  std::set<std::string> without_faults;  // observables of the logs that also appear in runs in which no fault fired
  bool interrupted = false;              // before its end: this is what was known by then
  std::int64_t workload_ns = 0;          // how long it takes without faults; 0: not known
  Plan plan;
  std::vector<Tried> tried;
  std::vector<Rival> rivals;          // the strongest evidence first, then the highest rate
  std::set<std::string> usual_signs;  // signs in the traces of runs in which no fault had an effect
  std::vector<NotTried> next;  // for a search that did not reach the target: what it would try next, most likely first
};

// What must happen, in which order and on which node, with the remarks, as lines; "" if nothing was found.
[[nodiscard]] std::string in_words(const Diagnosis& diagnosis);
// What one schedule does, as lines.
[[nodiscard]] std::string in_words(const Tried& tried);

struct Progress {
  int level = 1;
  int schedules = 0;  // tried so far
  int runs = 0;
  int runs_left = 0;  // at most
  double best_rate = 0;
  double seconds_left = 0;           // at most, by what runs took so far; 0: not known yet
  const Tried* first = nullptr;      // the schedule that reproduced the bug first; nullptr: none has yet
  const Diagnosis* found = nullptr;  // a schedule that has reached the target; the remaining runs only simplify it
  const std::vector<std::string>* warnings = nullptr;  // of the plan so far; nullptr: there is no plan yet
  std::string doing;  // "trying: fail openat(*/snapshot.*) on n2 with EIO", "confirming 3/10"
};

[[nodiscard]] Result<Diagnosis> diagnose(const Inputs& inputs, Runner& runner,
                                         const std::function<void(const Progress&)>& progress);

}  // namespace rose::diagnose
