// The loop of the search: a control run, then what the levels propose; hits are confirmed, the
// found schedule is minimised, the budget of runs is kept.
#include <algorithm>
#include <cmath>
#include <set>

#include "diagnose/proposer.h"

namespace rose::diagnose {
namespace {

using schedule::Fault;
using schedule::OracleAnswer;
using schedule::RunResult;
using schedule::Schedule;
using schedule::Tally;
using schedule::Verdict;

constexpr int kMostUnarmable = 10;  // schedules in a row that can't be armed: then it is not for their contexts
constexpr int kGateRuns = 3;  // hits in a row that a smaller schedule must show before it is confirmed in full

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string short_words(const Schedule& schedule) {
  if (schedule.faults.empty()) return "no faults";
  if (schedule.faults.size() == 1) return schedule::in_words(schedule.faults[0]);
  std::string ids;
  for (const Fault& fault : schedule.faults) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", fault.id);
  return fmt::format("{} faults: {}", schedule.faults.size(), ids);
}

// The same without one fault: what waited for it waits for what it waited for, as long in all.
Schedule without(const Schedule& schedule, std::size_t index) {
  Schedule smaller;
  smaller.name = schedule.name;
  const Fault& gone = schedule.faults[index];
  for (std::size_t i = 0; i < schedule.faults.size(); ++i) {
    if (i == index) continue;
    Fault fault = schedule.faults[i];
    const auto it = std::find(fault.after.begin(), fault.after.end(), gone.id);
    if (it != fault.after.end()) {
      fault.after.erase(it);
      for (const std::string& id : gone.after)
        if (std::find(fault.after.begin(), fault.after.end(), id) == fault.after.end()) fault.after.push_back(id);
      // Only times add up; other conditions of the gone fault go with it.
      const bool timed = gone.when.size() == 1 && gone.when[0].kind == schedule::ConditionKind::elapsed;
      const bool fault_timed = !fault.when.empty() && fault.when[0].kind == schedule::ConditionKind::elapsed;
      const bool process_fault = fault.kind != schedule::FaultKind::syscall;
      if (timed && fault_timed)
        fault.when[0].elapsed_ns += gone.when[0].elapsed_ns;
      else if (timed && process_fault)
        fault.when.insert(fault.when.begin(), gone.when[0]);
    }
    smaller.faults.push_back(std::move(fault));
  }
  return smaller;
}

class Search {
 public:
  Search(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress)
      : inputs_(inputs), runner_(runner), progress_(progress), options_(inputs.config->diagnose) {}

  Result<Diagnosis> run() {
    ROSE_TRY(d_.plan, make_plan(inputs_));
    ROSE_TRY(const bool go_on, control_run());
    if (!go_on) return std::move(d_);
    if (d_.plan.schedules.empty()) return nothing_to_try();
    ROSE_TRY(const bool reached, search());
    if (reached)
      ROSE_CHECK(minimise());
    else
      ROSE_CHECK(settle());
    conclude();
    return std::move(d_);
  }

 private:
  // A schedule that reproduced, with its confirmation.
  struct Kept {
    Schedule schedule;
    int level = 1;
    int schedules = 0;   // tried until then
    Tally tally;
    std::set<std::string> fired;  // faults that fired in a run that reproduced
    std::size_t tried = 0;        // index into d_.tried
  };

  [[nodiscard]] int left() const { return options_.max_runs - d_.runs; }

  double best_rate() const {
    double best = 0;
    for (const Kept& kept : kept_) best = std::max(best, kept.tally.rate());
    return confirming_ != nullptr ? std::max(best, confirming_->rate()) : best;
  }

  void tell(const std::string& doing) {
    if (progress_) {
      Progress progress;
      progress.level = level_;
      progress.schedules = d_.schedules;
      progress.runs = d_.runs;
      progress.runs_left = left();
      progress.best_rate = best_rate();
      progress.doing = doing;
      progress_(progress);
    }
  }

  Result<RunResult> run_once(const Schedule& schedule, const std::string& doing) {
    tell(doing);
    ++d_.runs;
    return runner_.run(schedule);
  }

  // --- the control run: without faults

  // False when the diagnosis ends here.
  Result<bool> control_run() {
    Schedule none;
    none.name = inputs_.config->name;
    Tried tried{none, 0, {}, "control run without faults"};
    RunResult result;
    for (int attempt = 0; attempt < 2 && left() > 0; ++attempt) {
      ROSE_TRY(result, run_once(none, attempt == 0 ? "control run without faults" : "control run without faults, again"));
      tried.tally.add(result.verdict);
      if (result.verdict != Verdict::inconclusive) break;
    }
    tried.note += fmt::format(": {}", result.reason);
    d_.tried.push_back(std::move(tried));
    d_.verdict = Verdict::inconclusive;
    if (result.verdict == Verdict::reproduced || result.oracle == OracleAnswer::hit) {
      d_.reason = "the bug shows without faults: the oracle found it in a control run, so no fault can be told to cause it; "
                  "see whether the oracle looks at what this run left, or whether the workload alone is enough";
      return false;
    }
    if (result.verdict == Verdict::inconclusive) {
      d_.reason = fmt::format("the control run without faults was inconclusive twice: {}",
                              result.reason.empty() ? "no reason was given" : result.reason);
      return false;
    }
    // Now the workload's length is known: what was planned by guess is planned again.
    const trace::Meta& meta = result.trace.meta;
    std::int64_t length = static_cast<std::int64_t>(result.seconds * 1e9);
    if (meta.workload_ts > 0 && meta.end_ns > meta.workload_ts) length = meta.end_ns - meta.workload_ts;
    if (length > 0) {
      ROSE_TRY(d_.plan, make_plan(inputs_, length));
    }
    control_ = std::move(result.trace);
    return true;
  }

  Diagnosis nothing_to_try() {
    d_.verdict = Verdict::inconclusive;
    d_.reason = d_.plan.failures == 0
                    ? std::string("the dump holds no failure: nothing failed, fell silent or ended in its window")
                    : fmt::format("nothing in the dump looks like a fault: all {} failures are normal or belong to no node; see "
                                  "'rose diagnose --plan'", d_.plan.failures);
    return std::move(d_);
  }

  // --- the levels

  // True when a schedule reached the target rate; it is kept_.back().
  Result<bool> search() {
    const SearchContext context{&inputs_, &d_.plan, &past_, &control_};
    std::vector<int> missing;
    for (const int level : options_.levels) {
      std::unique_ptr<Proposer> proposer = make_proposer(level, context);
      if (!proposer) {
        missing.push_back(level);
        continue;
      }
      level_ = level;
      ROSE_TRY(const bool reached, one_level(*proposer));
      if (reached) return true;
      if (left() <= 0) break;
      if (std::string note = proposer->left_out(); !note.empty()) d_.plan.notes.push_back(std::move(note));
    }
    if (!missing.empty()) {
      std::string list;
      for (const int level : missing) list += fmt::format("{}{}", list.empty() ? "" : ", ", level);
      missing_ = fmt::format("level{} {} of the search {} not in this version of rose yet", missing.size() > 1 ? "s" : "", list,
                             missing.size() > 1 ? "are" : "is");
      d_.plan.notes.push_back(fmt::format("the search stopped after level {}: {}", level_, missing_));
    }
    return false;
  }

  Result<bool> one_level(Proposer& proposer) {
    while (left() > 0) {
      const std::optional<Proposal> proposal = proposer.next();
      if (!proposal) return false;
      const std::string key = schedule::fingerprint(proposal->schedule);
      const bool fresh = tried_keys_.insert(key).second;
      if (!fresh && !proposal->again) continue;
      std::size_t index = d_.tried.size();
      if (fresh) {
        ++d_.schedules;
        d_.tried.push_back({proposal->schedule, level_, {}, proposal->why});
      } else {
        for (index = 0; schedule::fingerprint(d_.tried[index].schedule) != key;) ++index;
      }
      ROSE_TRY(const RunResult result, judged_run(*proposal, index));
      past_.push_back({level_, proposal->schedule, result.oracle, result.faults});
      proposer.learn(*proposal, result);
      if (result.verdict != Verdict::reproduced) continue;

      Kept kept{proposal->schedule, level_, d_.schedules, {}, {}, index};
      remember_fired(kept, result);
      ROSE_CHECK(confirm(kept.schedule, kept.tally, options_.confirm_runs, index, &kept));
      kept_.push_back(std::move(kept));
      if (reached(kept_.back().tally, options_.confirm_runs)) return true;
      d_.tried[index].note += fmt::format("; below the target: {} of {} confirming runs", kept_.back().tally.reproduced,
                                          kept_.back().tally.conclusive());
    }
    return false;
  }

  // One run; another one if the oracle could not tell.
  Result<RunResult> judged_run(const Proposal& proposal, std::size_t index) {
    const std::string doing =
        fmt::format("{}: {}", proposal.again ? "trying again" : "trying", short_words(proposal.schedule));
    RunResult result;
    for (int attempt = 0; attempt < 2 && left() > 0; ++attempt) {
      Result<RunResult> made = run_once(proposal.schedule, doing);
      if (!made && level_ > 1 && unarmable(made.error()) && ++unarmable_in_a_row_ < kMostUnarmable) {
        result = {};
        result.reason = made.error().message;
        d_.tried[index].tally.add(Verdict::inconclusive);
        break;
      }
      if (!made) return Unexpected(std::move(made).error());
      unarmable_in_a_row_ = 0;
      result = *std::move(made);
      d_.tried[index].tally.add(result.verdict);
      if (result.verdict == Verdict::inconclusive && result.oracle == OracleAnswer::hit) ++unfaulted_hits_;
      if (result.verdict != Verdict::inconclusive || result.oracle != OracleAnswer::unknown) break;
    }
    if (!result.reason.empty()) d_.tried[index].note += fmt::format("; {}", result.reason);
    return result;
  }

  // A context may name what the test deployment does not have: a function that its build inlined. That
  // ends the branch, not the diagnosis.
  static bool unarmable(const Error& error) { return error.kind == ErrorKind::input || error.kind == ErrorKind::environment; }

  static void remember_fired(Kept& kept, const RunResult& result) {
    for (const schedule::FaultOutcome& outcome : result.faults)
      if (outcome.fired) kept.fired.insert(outcome.id);
  }

  // --- confirmation

  // Only conclusive runs count for either side.
  static Tally conclusive(const Tally& tally) { return {tally.reproduced, tally.not_reproduced, 0}; }

  [[nodiscard]] bool reached(const Tally& tally, int planned) const {
    if (tally.conclusive() == 0) return false;
    // Decided early means that the missing runs could not have changed it; cut short by the budget
    // or by inconclusive runs, half of the planned ones must do.
    const bool decided = !schedule::undecided(conclusive(tally), options_.target_rate, planned);
    return (decided || tally.conclusive() * 2 >= planned) && tally.rate() + 1e-9 >= options_.target_rate;
  }

  Result<void> confirm(const Schedule& schedule, Tally& tally, int planned, std::size_t index, Kept* kept, bool to_the_end = false) {
    const int most_inconclusive = planned / 2 + 3;
    confirming_ = &tally;
    while (left() > 0 && tally.conclusive() < planned && tally.inconclusive < most_inconclusive &&
           (to_the_end || schedule::undecided(conclusive(tally), options_.target_rate, planned))) {
      const int batch = std::max(1, std::min({options_.jobs, planned - tally.conclusive(), left()}));
      tell(fmt::format("confirming {}/{}: {}", tally.conclusive() + 1, planned, short_words(schedule)));
      d_.runs += batch;
      ROSE_TRY(const std::vector<RunResult> results, runner_.run_many(schedule, batch));
      for (const RunResult& result : results) {
        tally.add(result.verdict);
        d_.tried[index].tally.add(result.verdict);
        if (kept != nullptr && result.verdict == Verdict::reproduced) remember_fired(*kept, result);
      }
    }
    confirming_ = nullptr;
    return {};
  }

  // --- minimisation: fewer faults at the same rate

  Result<void> minimise() {
    Kept best = kept_.back();
    Kept smaller = best;
    // Faults that never fired first, then from the last to the first: later ones are likelier consequences.
    std::vector<std::string> order;
    for (auto it = best.schedule.faults.rbegin(); it != best.schedule.faults.rend(); ++it) order.push_back(it->id);
    std::stable_partition(order.begin(), order.end(), [&](const std::string& id) { return !best.fired.contains(id); });
    for (const std::string& id : order) {
      if (smaller.schedule.faults.size() < 2 || left() < 1 + kGateRuns) break;
      std::size_t at = 0;
      while (smaller.schedule.faults[at].id != id) ++at;
      Kept trial = smaller;
      trial.schedule = without(smaller.schedule, at);
      trial.tally = {};
      trial.fired.clear();
      trial.tried = d_.tried.size();
      if (!tried_keys_.insert(schedule::fingerprint(trial.schedule)).second) continue;  // it missed before
      d_.tried.push_back({trial.schedule, trial.level, {}, fmt::format("smaller: without {}", id)});
      ROSE_TRY(const RunResult result,
               run_once(trial.schedule, fmt::format("is '{}' needed? without it: {}", id, short_words(trial.schedule))));
      d_.tried[trial.tried].tally.add(result.verdict);
      if (result.verdict != Verdict::reproduced) continue;
      ROSE_CHECK(confirm(trial.schedule, trial.tally, kGateRuns, trial.tried, &trial));
      if (trial.tally.conclusive() > 0 && !undecided_gate(trial.tally) && trial.tally.rate() + 1e-9 >= options_.target_rate)
        smaller = std::move(trial);
    }
    if (smaller.schedule.faults.size() < best.schedule.faults.size()) {
      ROSE_CHECK(confirm(smaller.schedule, smaller.tally, options_.confirm_runs, smaller.tried, &smaller));
      if (reached(smaller.tally, options_.confirm_runs)) {
        dropped_ = best.schedule.faults.size() - smaller.schedule.faults.size();
        best = std::move(smaller);
      }
    }
    kept_.back() = std::move(best);
    return {};
  }

  [[nodiscard]] bool undecided_gate(const Tally& tally) const {
    return schedule::undecided(conclusive(tally), options_.target_rate, kGateRuns);
  }

  // --- nothing reached the target: the best of what was kept

  static bool better(const Kept& a, const Kept& b) {
    if (a.tally.rate() != b.tally.rate()) return a.tally.rate() > b.tally.rate();
    return a.tally.interval().first > b.tally.interval().first;
  }

  Result<void> settle() {
    if (kept_.empty()) return {};
    // Confirmation stopped when the target was out of reach; a rate to report deserves all its runs.
    // They may bring it below the next one, which then deserves the same.
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      std::stable_sort(kept_.begin(), kept_.end(), better);
      Kept& best = kept_.front();
      if (best.tally.conclusive() >= options_.confirm_runs) break;
      level_ = best.level;
      ROSE_CHECK(confirm(best.schedule, best.tally, options_.confirm_runs, best.tried, &best, true));
    }
    std::stable_sort(kept_.begin(), kept_.end(), better);
    return {};
  }

  void conclude() {
    if (!kept_.empty()) {
      const Kept& kept = best_kept();
      d_.target_reached = reached(kept.tally, options_.confirm_runs);
      d_.verdict = d_.target_reached ? Verdict::reproduced : Verdict::not_reproduced;
      d_.level = kept.level;
      d_.schedules = d_.target_reached ? kept.schedules : d_.schedules;
      d_.tally = kept.tally;
      d_.confirm_runs = kept.tally.runs();
      d_.found = kept.schedule;
      d_.words = words(kept);
      const std::string rate = fmt::format("{} of {} confirming runs ({})", kept.tally.reproduced, kept.tally.conclusive(),
                                           percent(kept.tally.rate()));
      if (d_.target_reached)
        d_.reason = fmt::format("the schedule reproduces the bug in {}", rate);
      else
        d_.reason = fmt::format("no schedule reached the target rate of {}; the best reproduced the bug in {}{}",
                                percent(options_.target_rate), rate, ended_early());
      return;
    }
    int conclusive_runs = 0;
    for (const Tried& tried : d_.tried)
      if (tried.level > 0) conclusive_runs += tried.tally.conclusive();
    if (d_.schedules == 0) {
      d_.verdict = Verdict::inconclusive;
      d_.reason =
          left() <= 0 ? std::string("max_runs left no run for a schedule after the control run")
          : !missing_.empty()
              ? fmt::format("no schedule was tried: {}", missing_)
              : std::string("no schedule was tried: the levels asked for had nothing to propose; level 3 goes on from what "
                            "level 2 reached");
    } else if (conclusive_runs == 0) {
      d_.verdict = Verdict::inconclusive;
      d_.reason = fmt::format("no run of the {} schedules tried could be judged; the last one: {}", d_.schedules,
                              d_.tried.back().note);
    } else {
      d_.verdict = Verdict::not_reproduced;
      d_.reason = fmt::format("none of the {} schedules tried reproduced the bug{}", d_.schedules, ended_early());
    }
    if (unfaulted_hits_ > 0)
      d_.plan.notes.push_back(fmt::format("the bug showed in {} run{} in which no fault had fired: it may come without faults, rarely",
                                          unfaulted_hits_, unfaulted_hits_ == 1 ? "" : "s"));
  }

  std::string ended_early() const {
    if (left() <= 0) return fmt::format(" (max_runs = {} is used up)", options_.max_runs);
    return missing_.empty() ? std::string{} : fmt::format(" ({})", missing_);
  }

  // settle() sorted the best to the front; a search that reached the target ended with its schedule.
  const Kept& best_kept() const {
    return reached(kept_.back().tally, options_.confirm_runs) ? kept_.back() : kept_.front();
  }

  std::string words(const Kept& kept) const {
    std::string text = schedule::in_words(kept.schedule);
    while (text.ends_with('\n')) text.pop_back();
    const auto [low, high] = kept.tally.interval();
    text += fmt::format("\nThe bug then shows in {} of {} runs ({}; with 95 % confidence between {} and {}).", kept.tally.reproduced,
                        kept.tally.conclusive(), percent(kept.tally.rate()), percent(low), percent(high));
    if (dropped_ > 0)
      text += fmt::format("\nIt shows without {} other fault{} of the dump, so {} left out.", dropped_, dropped_ == 1 ? "" : "s",
                          dropped_ == 1 ? "that one was" : "those were");
    return text;
  }

  const Inputs& inputs_;
  Runner& runner_;
  const std::function<void(const Progress&)>& progress_;
  const config::DiagnoseOptions& options_;
  Diagnosis d_;
  std::set<std::string> tried_keys_;
  const Tally* confirming_ = nullptr;  // of the schedule that is being confirmed
  std::vector<Kept> kept_;
  std::string missing_;       // levels that were asked for and do not exist
  std::size_t dropped_ = 0;   // faults that minimisation took away
  std::vector<PastRun> past_;
  trace::Trace control_;      // what the run without faults did
  int unarmable_in_a_row_ = 0;
  int unfaulted_hits_ = 0;
  int level_ = 1;
};

}  // namespace

Result<Diagnosis> diagnose(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress) {
  ROSE_ASSERT(inputs.config != nullptr);
  return Search(inputs, runner, progress).run();
}

}  // namespace rose::diagnose
