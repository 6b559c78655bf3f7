// The loop of the search: a control run, then what the levels propose; hits are confirmed, those below
// the target are refined first, the found schedule is made simpler, the budget of runs is kept.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "diagnose/proposer.h"
#include "diagnose/signs.h"
#include "diagnose/simpler.h"

namespace rose::diagnose {
namespace {

using schedule::Fault;
using schedule::OracleAnswer;
using schedule::RunResult;
using schedule::Schedule;
using schedule::Tally;
using schedule::Verdict;

constexpr int kMostUnarmable = 10;  // schedules in a row that can't be armed: then it is not for their contexts
constexpr int kGateRuns = 4;         // of a simpler schedule, before the next step builds on it
constexpr int kMostSimplifying = 40; // runs for that, the last confirmation apart;
constexpr int kFewSimplifying = 12;  // of longer runs only as many as the finding took, but so many at least
constexpr double kLongRun = 5;       // seconds
constexpr double kSameRate = 0.1 + 1e-9;  // rates this close are taken for the same
constexpr std::size_t kMostLeads = 2;     // schedules below the target that each level refines before it looks elsewhere
constexpr std::size_t kMostLastTries = 20;   // schedules that missed and are tried again, twice, when nothing hit
constexpr std::size_t kMostTriesBetween = 6; // of them before the next level

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string short_words(const Schedule& schedule) {
  if (schedule.faults.empty()) return "no faults";
  if (schedule.faults.size() == 1) return schedule::in_words(schedule.faults[0]);
  std::string ids;
  for (const Fault& fault : schedule.faults) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", fault.id);
  return fmt::format("{} faults: {}", schedule.faults.size(), ids);
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
    if (!reached)
      ROSE_CHECK(settle());
    else if (inputs_.simplify)
      ROSE_CHECK(minimise());
    if (unarmable_ && !armed_any_) return Unexpected(*std::move(unarmable_));
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
      if (simplify_until_ > 0) {
        progress.runs_left = std::max(0, std::min(progress.runs_left, simplify_until_ - d_.runs));
        progress.found = &d_;
      }
      progress.best_rate = best_rate();
      if (timed_runs_ > 0)
        progress.seconds_left = run_seconds_ / timed_runs_ * progress.runs_left / std::max(1, options_.jobs);
      progress.doing = doing;
      progress_(progress);
    }
  }

  std::vector<Result<RunResult>> run_all(const std::vector<const Schedule*>& schedules) {
    d_.runs += static_cast<int>(schedules.size());
    std::vector<Result<RunResult>> made = runner_.run_all(schedules);
    for (const Result<RunResult>& result : made)
      if (result) {
        run_seconds_ += result->seconds;
        ++timed_runs_;
      }
    return made;
  }

  // --- the control run: without faults

  // False when the diagnosis ends here.
  Result<bool> control_run() {
    Schedule none;
    none.name = inputs_.config->name;
    Tried tried{none, 0, {}, "control run without faults"};
    RunResult result;
    for (int attempt = 0; attempt < 2 && left() > 0; ++attempt) {
      tell(attempt == 0 ? "control run without faults" : "control run without faults, again");
      std::vector<Result<RunResult>> made = run_all({&none});
      if (!made[0]) return Unexpected(std::move(made[0]).error());
      result = *std::move(made[0]);
      tried.tally.add(result.verdict);
      if (result.verdict != Verdict::inconclusive) break;
    }
    tried.note += fmt::format(": {}", result.reason);
    d_.tried.push_back(std::move(tried));
    shown_.emplace_back();
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
    const SearchContext context{&inputs_, &d_.plan, &past_, &control_, &reached_};
    signs_.emplace(d_.plan);
    // Something is held back for what missed: a miss is no proof.
    floor_ = std::min(2 * static_cast<int>(kMostLastTries), options_.max_runs / 8);
    for (const int level : options_.levels) {
      level_ = level;
      ROSE_TRY(bool reached, refine(level));
      if (reached) return true;
      const std::unique_ptr<Proposer> proposer = make_proposer(level, context);
      ROSE_TRY(reached, one_level(*proposer));
      if (reached) return true;
      // A miss of the likeliest is still likelier to be chance than the next level's hundreds are to hit.
      ROSE_TRY(reached, try_misses_again(kMostTriesBetween, 1));
      if (reached) return true;
      if (left() <= floor_) break;
      if (std::string note = proposer->left_out(); !note.empty()) d_.plan.notes.push_back(std::move(note));
    }
    floor_ = 0;
    return try_misses_again(kMostLastTries, 2);
  }

  // A schedule of an earlier level that shows the bug, but too rarely, is the best start there is: this level
  // goes on from it alone, with its faults and its order, before it looks at everything.
  Result<bool> refine(int level) {
    std::vector<const Kept*> leads;
    for (const Kept& kept : kept_)
      if (kept.level < level) leads.push_back(&kept);
    std::stable_sort(leads.begin(), leads.end(), [](const Kept* a, const Kept* b) { return better(*a, *b); });
    if (leads.size() > kMostLeads) leads.resize(kMostLeads);
    std::vector<Schedule> schedules;  // kept_ grows meanwhile
    for (const Kept* lead : leads) schedules.push_back(lead->schedule);
    for (const Schedule& lead : schedules) {
      Plan plan = plan_of(lead);
      std::vector<PastRun> past;
      const std::string key = schedule::fingerprint(lead);
      for (const PastRun& run : past_)
        if (schedule::fingerprint(run.schedule) == key) past.push_back(run);
      std::vector<ReachedContext> reached_by_it;
      for (const ReachedContext& context : reached_)
        if (schedule::fingerprint(context.schedule) == key) reached_by_it.push_back(context);
      const std::size_t known = reached_by_it.size();
      const SearchContext context{&inputs_, &plan, &past, &control_, &reached_by_it};
      const std::unique_ptr<Proposer> proposer = make_proposer(level, context);
      const int before = floor_;
      floor_ = std::max(floor_, left() / 2);  // half of what is left, for the whole rest
      Result<bool> reached = one_level(*proposer);
      floor_ = before;
      reached_.insert(reached_.end(), reached_by_it.begin() + static_cast<std::ptrdiff_t>(known), reached_by_it.end());
      if (!reached || *reached) return reached;
    }
    return false;
  }

  // The plan as if the dump had held the faults of `lead` only.
  Plan plan_of(const Schedule& lead) const {
    Plan plan;
    plan.begin_ts = d_.plan.begin_ts;
    plan.end_ts = d_.plan.end_ts;
    plan.workload_ts = d_.plan.workload_ts;
    for (const Fault& fault : lead.faults)
      for (const Candidate& candidate : d_.plan.candidates) {
        if (candidate.fault.id != fault.id) continue;
        Candidate own = candidate;
        own.fault = fault;
        own.symptom = false;
        own.rank = static_cast<int>(plan.candidates.size()) + 1;
        plan.candidates.push_back(std::move(own));
        break;
      }
    plan.schedules = {lead};
    plan.schedule_whys = {"it showed the bug, but too rarely"};
    return plan;
  }

  // A proposal on its way through a run.
  struct Trial {
    Proposal proposal;
    std::size_t index = 0;  // into d_.tried and shown_
    bool runs = true;       // false: it ran before
    int schedules = 0;      // tried until then
    RunResult result;
  };

  Result<bool> one_level(Proposer& proposer) {
    while (left() > floor_) {
      std::vector<Trial> batch = next_batch(proposer);
      if (batch.empty()) return false;
      ROSE_CHECK(make_runs(batch));
      for (Trial& trial : batch) {
        if (trial.runs) past_.push_back({level_, trial.proposal.schedule, trial.result.oracle, trial.result.faults});
        proposer.learn(trial.proposal, trial.runs ? trial.result : shown_[trial.index]);
      }
      ROSE_TRY(const bool reached, confirm_hits(batch));
      if (reached) return true;
    }
    return false;
  }

  // As many as may run side by side, and what need not run again among them.
  std::vector<Trial> next_batch(Proposer& proposer) {
    std::vector<Trial> batch;
    const int most = std::max(1, std::min(options_.jobs, left() - floor_));
    for (int runs = 0; runs < most;) {
      std::optional<Proposal> proposal = proposer.next();
      if (!proposal) break;
      Trial trial;
      const auto [known, fresh] = tried_.try_emplace(schedule::fingerprint(proposal->schedule), d_.tried.size());
      trial.index = known->second;
      trial.runs = fresh || proposal->again;
      if (fresh) {
        ++d_.schedules;
        d_.tried.push_back({proposal->schedule, level_, {}, proposal->why});
        shown_.emplace_back();
      }
      trial.schedules = d_.schedules;
      trial.proposal = *std::move(proposal);
      runs += trial.runs ? 1 : 0;
      batch.push_back(std::move(trial));
      if (!proposer.goes_on()) break;
    }
    return batch;
  }

  // One run of each; another one where the oracle could not tell.
  Result<void> make_runs(std::vector<Trial>& batch) {
    std::vector<Trial*> todo;
    for (Trial& trial : batch)
      if (trial.runs) todo.push_back(&trial);
    for (int attempt = 0; attempt < 2 && !todo.empty() && left() > 0; ++attempt) {
      if (todo.size() > static_cast<std::size_t>(left())) todo.resize(static_cast<std::size_t>(left()));
      std::vector<const Schedule*> schedules;
      for (const Trial* trial : todo) schedules.push_back(&trial->proposal.schedule);
      const Proposal& first = todo[0]->proposal;
      tell(fmt::format("{}: {}{}", first.again ? "trying again" : "trying", first.look ? first.why : short_words(first.schedule),
                       todo.size() > 1 ? fmt::format(" (and {} more beside it)", todo.size() - 1) : ""));
      std::vector<Result<RunResult>> made = run_all(schedules);
      std::vector<Trial*> unclear;
      for (std::size_t i = 0; i < todo.size(); ++i) {
        ROSE_TRY(const bool armed, take(*todo[i], std::move(made[i])));
        if (todo[i]->result.oracle == OracleAnswer::unknown && armed && !todo[i]->proposal.look) unclear.push_back(todo[i]);
      }
      todo = std::move(unclear);
    }
    for (Trial& trial : batch) {
      if (!trial.runs) continue;
      std::string& note = d_.tried[trial.index].note;  // another try may have the first one's reason
      const std::string& reason = trial.result.reason;
      if (!reason.empty() && !trial.proposal.look && note.find(reason) == std::string::npos) note += fmt::format("; {}", reason);
      if (trial.result.verdict == Verdict::not_reproduced) {
        const int score = signs_->score(trial.result.trace);
        const auto [miss, fresh] = misses_.try_emplace(trial.index, score);
        if (!fresh) miss->second = std::max(miss->second, score);
      }
      RunResult& shown = shown_[trial.index];
      shown.verdict = trial.result.verdict;
      shown.reason = trial.result.reason;
      shown.oracle = trial.result.oracle;
      shown.faults = trial.result.faults;
    }
    return {};
  }

  // A schedule may name what the test deployment does not have: a function that its build inlined. That
  // ends its branch, not the diagnosis; unless hardly anything can be armed. False: it could not be armed.
  Result<bool> take(Trial& trial, Result<RunResult> made) {
    if (!made) {
      const ErrorKind kind = made.error().kind;
      if ((kind != ErrorKind::input && kind != ErrorKind::environment) || ++unarmable_in_a_row_ >= kMostUnarmable)
        return Unexpected(std::move(made).error());
      trial.result = {};
      trial.result.reason = made.error().message;
      if (!unarmable_) unarmable_ = std::move(made).error();
      d_.tried[trial.index].tally.add(Verdict::inconclusive);
      return false;
    }
    unarmable_in_a_row_ = 0;
    armed_any_ = true;
    trial.result = *std::move(made);
    d_.tried[trial.index].tally.add(trial.result.verdict);
    if (trial.result.verdict == Verdict::inconclusive && trial.result.oracle == OracleAnswer::hit) ++unfaulted_hits_;
    return true;
  }

  Result<bool> confirm_hits(const std::vector<Trial>& batch) {
    for (const Trial& trial : batch) {
      if (!trial.runs || trial.result.verdict != Verdict::reproduced) continue;
      Kept kept{trial.proposal.schedule, d_.tried[trial.index].level, trial.schedules, {}, {}, trial.index};
      remember_fired(kept, trial.result);
      ROSE_CHECK(confirm(kept.schedule, kept.tally, options_.confirm_runs, trial.index, &kept));
      kept_.push_back(std::move(kept));
      if (reached(kept_.back().tally, options_.confirm_runs)) return true;
      d_.tried[trial.index].note += fmt::format("; below the target: {} of {} confirming runs", kept_.back().tally.reproduced,
                                                kept_.back().tally.conclusive());
    }
    return false;
  }

  // How many of its faults are neither symptoms nor everyday failures; failed calls, of which any number may be put
  // together, are one.
  int surprising(const Schedule& schedule) const {
    int faults = 0;
    bool calls = false;
    for (const Candidate& c : d_.plan.candidates) {
      if (c.symptom || c.profiled) break;  // they come last
      if (c.ordinariness > 1 || schedule.find(c.fault.id) == nullptr) continue;
      if (c.kind == schedule::FaultKind::syscall)
        calls = true;
      else
        ++faults;
    }
    return faults + (calls ? 1 : 0);
  }

  // Nothing hit, or too rarely: what missed is tried again, likeliest first: what brought back symptoms of the dump,
  // what holds more of its surprising faults, what ranked first.
  Result<bool> try_misses_again(std::size_t most, int rounds) {
    for (const Kept& kept : kept_)
      if (kept.tally.rate() * 2 >= options_.target_rate) return false;
    std::vector<std::tuple<int, int, std::size_t>> order;
    for (const auto& [index, score] : misses_)
      if (d_.tried[index].tally.reproduced == 0) order.emplace_back(-score, -surprising(d_.tried[index].schedule), index);
    std::sort(order.begin(), order.end());
    if (order.size() > most) order.resize(most);
    for (int round = 1; round <= rounds; ++round) {
      for (std::size_t at = 0; at < order.size() && left() > floor_;) {
        std::vector<Trial> batch;
        for (; at < order.size() && static_cast<int>(batch.size()) < std::min(options_.jobs, left() - floor_); ++at) {
          const std::size_t index = std::get<2>(order[at]);
          Trial trial;
          trial.index = index;
          trial.schedules = d_.schedules;
          trial.proposal = {d_.tried[index].schedule, {}, true};
          batch.push_back(std::move(trial));
        }
        const int level = std::exchange(level_, d_.tried[batch[0].index].level);
        ROSE_CHECK(make_runs(batch));
        level_ = level;
        ROSE_TRY(const bool reached, confirm_hits(batch));
        if (reached) return true;
      }
    }
    return false;
  }

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

  struct Confirming {
    int planned = 0;
    int most_inconclusive = 0;
    bool to_the_end = false;  // also when it is decided: for a rate to report
  };

  Result<void> confirm(const Schedule& schedule, Tally& tally, int planned, std::size_t index, Kept* kept, bool to_the_end = false) {
    return confirm(schedule, tally, {planned, planned / 2 + 3, to_the_end}, index, kept);
  }

  Result<void> confirm(const Schedule& schedule, Tally& tally, const Confirming& how, std::size_t index, Kept* kept) {
    confirming_ = &tally;
    // A schedule far below a target that takes many runs to confirm is not given them all.
    const auto go_on = [&] {
      return schedule::undecided(conclusive(tally), options_.target_rate, how.planned) &&
             !schedule::hopeless(conclusive(tally), options_.target_rate);
    };
    while (left() > 0 && tally.conclusive() < how.planned && tally.inconclusive < how.most_inconclusive && (how.to_the_end || go_on())) {
      const int batch = std::max(1, std::min({options_.jobs, how.planned - tally.conclusive(), left()}));
      tell(fmt::format("{} {}/{}: {}", how.planned == options_.confirm_runs ? "confirming" : "does it still show,",
                       tally.conclusive() + 1, how.planned, short_words(schedule)));
      for (Result<RunResult>& result : run_all(std::vector<const Schedule*>(static_cast<std::size_t>(batch), &schedule))) {
        if (!result) return Unexpected(std::move(result).error());
        tally.add(result->verdict);
        d_.tried[index].tally.add(result->verdict);
        if (kept != nullptr && result->verdict == Verdict::reproduced) remember_fired(*kept, *result);
      }
    }
    confirming_ = nullptr;
    return {};
  }

  // --- minimisation: simpler, at the same rate

  Result<void> minimise() {
    const Kept found = kept_.back();
    Simplifier simplifier(found.schedule, found.fired);
    Kept fewest = found;    // as it stood when only faults had been taken away
    Kept smaller = found;
    const int before = d_.runs;
    const bool long_runs = timed_runs_ > 0 && run_seconds_ / timed_runs_ > kLongRun;
    const int most = long_runs ? std::clamp(before, kFewSimplifying, kMostSimplifying) : kMostSimplifying;
    conclude();  // what is told until then, should somebody not want to wait for less of it
    simplify_until_ = before + most + 2 * options_.confirm_runs;
    while (d_.runs - before + kGateRuns <= most && left() >= options_.confirm_runs + kGateRuns) {
      std::optional<Simplifier::Idea> idea = simplifier.next();
      if (!idea) break;
      ROSE_TRY(const bool holds, still_reproduces(*idea, smaller));
      simplifier.learn(holds);
      if (schedule::fingerprint(simplifier.fewest_faults()) == schedule::fingerprint(smaller.schedule)) fewest = smaller;
    }
    std::vector<Kept> wanted{smaller};
    if (schedule::fingerprint(fewest.schedule) != schedule::fingerprint(smaller.schedule)) wanted.push_back(fewest);
    for (Kept& kept : wanted) {
      if (schedule::fingerprint(kept.schedule) == schedule::fingerprint(found.schedule) || left() < 1) break;
      const bool all = &kept == &wanted.front();
      kept.tally = {};  // of the steps' runs only the good ones led here: they prove nothing
      ROSE_CHECK(confirm(kept.schedule, kept.tally, options_.confirm_runs, kept.tried, &kept));
      // Simpler is no gain when it shows more rarely: a run in ten is as much as chance makes.
      if (!reached(kept.tally, options_.confirm_runs) || kept.tally.rate() + kSameRate < found.tally.rate()) {
        d_.tried[kept.tried].note += "; too rare when confirmed";
        continue;
      }
      dropped_ = found.schedule.faults.size() - kept.schedule.faults.size();
      if (all) changes_ = simplifier.changes();
      kept_.back() = std::move(kept);
      break;
    }
    d_.simplify_runs = d_.runs - before;
    return {};
  }

  // A few runs; true replaces `smaller`.
  Result<bool> still_reproduces(Simplifier::Idea& idea, Kept& smaller) {
    const auto [known, fresh] = tried_.try_emplace(schedule::fingerprint(idea.schedule), d_.tried.size());
    if (!fresh) return false;  // it missed before
    Kept trial = smaller;
    trial.schedule = std::move(idea.schedule);
    trial.tally = {};
    trial.fired.clear();
    trial.tried = known->second;
    d_.tried.push_back({trial.schedule, trial.level, {}, fmt::format("simpler: {}", idea.what)});
    shown_.emplace_back();
    ROSE_CHECK(confirm(trial.schedule, trial.tally, {kGateRuns, 1, false}, trial.tried, &trial));
    const bool decided = !schedule::undecided(conclusive(trial.tally), options_.target_rate, kGateRuns);
    if (!decided || trial.tally.conclusive() == 0 || trial.tally.rate() + 1e-9 < options_.target_rate) return false;
    smaller = std::move(trial);
    return true;
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
    return {};
  }

  // settle() sorted the best to the front; a search that reached the target ended with its schedule.
  const Kept& best_kept() const {
    return reached(kept_.back().tally, options_.confirm_runs) ? kept_.back() : kept_.front();
  }

  // Why every fault of it looked like a consequence of something else in the dump; "" when one did not.
  std::string consequence(const Schedule& schedule) const {
    std::string why;
    for (const Fault& fault : schedule.faults) {
      const auto candidate = std::find_if(d_.plan.candidates.begin(), d_.plan.candidates.end(),
                                          [&](const Candidate& c) { return c.fault.id == fault.id; });
      if (candidate == d_.plan.candidates.end() || !candidate->symptom) return {};
      if (why.empty()) why = candidate->why;
    }
    return why;
  }

  std::string words(const Kept& kept) const {
    std::string text = schedule::in_words(kept.schedule);
    while (text.ends_with('\n')) text.pop_back();
    if (const std::string places = places_in_words(kept.schedule, inputs_.code); !places.empty()) text += "\n" + places;
    const auto [low, high] = kept.tally.interval();
    text += fmt::format("\nThe bug then shows in {} of {} runs ({}; with 95 % confidence between {} and {}).", kept.tally.reproduced,
                        kept.tally.conclusive(), percent(kept.tally.rate()), percent(low), percent(high));
    if (const std::string why = consequence(kept.schedule); !why.empty())
      text += fmt::format("\nBut in the dump this looks like a consequence, not a cause ({}). What came before it was tried and did not show the bug; "
                          "if the oracle asks for this consequence itself, it proves nothing.", why);
    if (dropped_ > 0)
      text += fmt::format("\nIt shows without {} other fault{} of the dump, so {} left out.", dropped_, dropped_ == 1 ? "" : "s",
                          dropped_ == 1 ? "that one was" : "those were");
    if (!changes_.empty()) {
      text += "\nMade simpler at the same rate: ";
      for (std::size_t i = 0; i < changes_.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : "; ", changes_[i]);
      text += ".";
    }
    return text;
  }

  const Inputs& inputs_;
  Runner& runner_;
  const std::function<void(const Progress&)>& progress_;
  const config::DiagnoseOptions& options_;
  Diagnosis d_;
  std::map<std::string, std::size_t> tried_;  // by fingerprint: index into d_.tried
  std::vector<RunResult> shown_;              // what the last run of each showed, without its trace
  std::map<std::size_t, int> misses_;         // those that missed, and how promising that looked
  std::optional<Promising> signs_;
  const Tally* confirming_ = nullptr;         // of the schedule that is being confirmed
  std::vector<Kept> kept_;
  std::size_t dropped_ = 0;                   // faults that minimisation took away
  std::vector<std::string> changes_;          // and what else it made simpler
  std::vector<PastRun> past_;
  std::vector<ReachedContext> reached_;       // by level 2
  trace::Trace control_;                      // what the run without faults did
  std::optional<Error> unarmable_;            // the first schedule that this deployment could not run
  bool armed_any_ = false;
  int unarmable_in_a_row_ = 0;
  int unfaulted_hits_ = 0;
  int level_ = 1;
  int simplify_until_ = 0;                    // runs in all, at most; 0: nothing was found yet
  int floor_ = 0;                             // runs that the levels leave over
  double run_seconds_ = 0;
  int timed_runs_ = 0;
};

}  // namespace

Result<Diagnosis> diagnose(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress) {
  ROSE_ASSERT(inputs.config != nullptr);
  return Search(inputs, runner, progress).run();
}

}  // namespace rose::diagnose
