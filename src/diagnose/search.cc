// The search: makes a control run and a survey (surveyor.h), then repeatedly runs the best trial of all moves. A
// schedule that reproduces the bug is narrowed down and screened (confirm.h). If it misses too often, it becomes the
// base of further trials; otherwise it is simplified and its rate is measured (refine.h).
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "diagnose/conclude.h"
#include "diagnose/confirm.h"
#include "diagnose/feedback.h"
#include "diagnose/forecast.h"
#include "diagnose/hypothesis.h"
#include "diagnose/lab.h"
#include "diagnose/lead.h"
#include "diagnose/misses.h"
#include "diagnose/move.h"
#include "diagnose/refine.h"
#include "diagnose/restarts.h"
#include "diagnose/surveyor.h"
#include "diagnose/warnings.h"
#include "diagnose/window.h"
#include "evidence/forms.h"
#include "evidence/nodes.h"

namespace rose::diagnose {
namespace {

using schedule::Verdict;

std::set<std::string> fault_ids(const Schedule& schedule) {
  std::set<std::string> ids;
  for (const Fault& fault : schedule.faults) ids.insert(fault.id);
  return ids;
}

class Search {
 public:
  Search(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress)
      : inputs_(inputs), options_(inputs.config->diagnose), lab_(inputs, runner, progress, d_) {
    world_.inputs = &inputs;
    world_.config = inputs.config;
  }

  Result<Diagnosis> run() {
    Result<void> ended = go();
    if (!ended && (ended.error().kind != ErrorKind::cancelled || !interrupted()))
      return Unexpected(std::move(ended).error());
    return std::move(d_);
  }

 private:
  Result<void> go() {
    ROSE_TRY(d_.plan, make_plan(inputs_));
    ROSE_TRY(const bool proceed, control_run());
    if (!proceed) return {};
    // A planned restart may reproduce the bug although the evidence contains nothing that looks like a fault.
    if (d_.plan.candidates.empty() && restart_hits_.empty()) {
      conclusion_.nothing_to_try();
      return {};
    }
    ROSE_CHECK(prepare());
    ROSE_TRY(bool reached, follow_restarts());
    // A schedule that fails the final test becomes an ordinary lead, and the search continues.
    for (;; reached = false) {
      if (!reached) {
        ROSE_TRY(reached, search());
      }
      if (!reached) {
        ROSE_CHECK(give_up());
        break;
      }
      if (inputs_.stop_after == StopAfter::found) {
        d_.unconfirmed = true;
        conclusion_.conclude(Found{.lead = leads_.back()});
        return {};
      }
      ROSE_TRY(const bool decided, settle());
      if (decided) break;
    }
    for (const std::unique_ptr<Move>& move : moves_)
      if (std::string note = move->left_out(); !note.empty()) {
        d_.plan.notes.push_back(std::move(note));
        break;
      }
    conclusion_.conclude(final_);
    return {};
  }

  // No schedule reaches the target: reports the best one with its rate.
  Result<void> give_up() {
    d_.next = next_ideas(world_, lab_, moves_, kMostNext);
    for (Lead& lead : waiting_) leads_.push_back(std::move(lead));
    if (leads_.empty()) return {};
    std::stable_sort(leads_.begin(), leads_.end(), better);
    Lead best = leads_.front();
    // Measure the rate of the best one by fresh runs, because the best of several schedules is partly best by chance.
    if (decided_ && !better(best, decided_->lead)) best = decided_->lead;
    best.promising = best.accepted = false;
    return finish(best);
  }

  // Completes the search with the schedule that was found last. If there are such schedules, replaces it by one with
  // certain faults, then by one whose failure is more similar to production's, then by a more reliable one. Simplifies
  // and tests the result. Returns false if the result does not reach the target; the search then continues.
  Result<bool> settle() {
    Lead best = leads_.back();
    as_found_ = Found{.lead = best};  // the result if the user interrupts the remaining steps
    ROSE_CHECK(refinement_.prefer_certain(best));
    as_found_ = Found{.lead = best};
    ROSE_CHECK(find_more_similar(best));
    if (best.tally.rate() < kReliableRate) ROSE_CHECK(find_more_reliable(best));
    const int schedules = d_.schedules;
    ROSE_CHECK(finish(best));
    if (final_->lead.accepted && final_->lead.tally.rate() < kReliableRate) ROSE_CHECK(replace_by_more_reliable());
    if (final_->lead.accepted || lab_.left() <= 0) return true;
    d_.schedules = schedules;
    Lead refuted = final_->lead;
    if (!decided_ || better(refuted, decided_->lead)) decided_ = final_;
    refuted.promising = false;
    refine_from(refuted);
    leads_.push_back(std::move(refuted));
    as_found_.reset();
    final_.reset();
    lab_.found = false;
    lab_.runs_until = 0;
    d_.simplify_runs = d_.rate_runs = 0;
    return false;
  }

  // Replaces an accepted schedule that sometimes misses by a more reliable one, if the search finds one and it passes
  // the test.
  Result<void> replace_by_more_reliable() {
    const Found before = *final_;
    const auto [tested, tally, interval] = std::tuple(d_.tested, d_.tally, d_.interval);
    Lead best = before.lead;
    ROSE_CHECK(find_more_reliable(best));
    if (best.tried == before.lead.tried) return {};
    ROSE_CHECK(finish(best));
    if (final_->lead.accepted && !better(before.lead, final_->lead)) return {};
    final_ = before;
    std::tie(d_.tested, d_.tally, d_.interval) = std::tie(tested, tally, interval);
    d_.rate_runs = d_.tally.runs();
    return {};
  }

  // The user has interrupted the search: reports what is known. Returns false if nothing is known.
  bool interrupted() {
    d_.interrupted = true;
    if (as_found_) {  // a confirmed schedule is known
      const std::optional<Found> simpler = simpler_by_then();
      conclusion_.conclude(simpler ? simpler : as_found_);
      d_.verdict = Verdict::reproduced;  // as with StopAfter::found
      d_.plan.notes.push_back(
          simpler ? "interrupted after the schedule had been found: it was partly simplified, and its rate is "
                    "that of its own runs"
                  : "interrupted after the schedule had been found: it was not simplified, and its rate is that of the "
                    "runs that confirmed it");
      return true;
    }
    Lead best;
    for (std::size_t i = 0; i < d_.tried.size(); ++i) {
      const Tried& tried = d_.tried[i];
      if (tried.tally.reproduced == 0 || tried.schedule.faults.empty()) continue;
      Lead lead;
      lead.schedule = tried.schedule;
      lead.level = tried.level;
      lead.tried = i;
      lead.tally = tried.tally;
      if (best.schedule.faults.empty() || better(lead, best)) best = std::move(lead);
    }
    if (std::none_of(d_.tried.begin(), d_.tried.end(),
                     [](const Tried& tried) { return tried.level > 0 && tried.tally.runs() > 0; }))
      return false;
    d_.next = next_ideas(world_, lab_, moves_, kMostNext);
    if (best.schedule.faults.empty()) {
      conclusion_.conclude({});
      return true;
    }
    conclusion_.conclude(Found{.lead = best});
    d_.verdict = Verdict::inconclusive;
    d_.plan.notes.push_back("interrupted before a schedule was confirmed: this is the best so far");
    return true;
  }

  // The simplest form so far, if the runs of this form itself suggest that it reaches the target.
  std::optional<Found> simpler_by_then() const {
    if (!final_ || final_->lead.tried == as_found_->lead.tried) return std::nullopt;
    const schedule::Tally& tally = d_.tried[final_->lead.tried].tally;
    if (tally.reproduced == 0 || !schedule::RateTest(options_.target_rate).likely(tally)) return std::nullopt;
    Found simpler = *final_;
    simpler.lead.tally = tally;
    simpler.rate_measured = false;
    return simpler;
  }

  // --- runs without faults

  // Returns false if the diagnosis ends here.
  Result<bool> control_run() {
    Schedule none;
    none.name = inputs_.config->name;
    const std::size_t index = lab_.enter(none, 0, "control run without faults").index;
    RunResult result;
    for (int attempt = 0; attempt < 2 && lab_.left() > 0; ++attempt) {
      if (const std::size_t room = lab_.room(); room > 0) {
        ROSE_TRY(std::vector<Schedule> next, after_controls(room));
        lab_.expect(std::move(next));
      }
      ROSE_TRY(std::vector<Lab::Made> made,
               lab_.run({index}, attempt == 0 ? "control run without faults" : "control run without faults, again"));
      result = std::move(made[0].result);
      if (result.verdict != Verdict::inconclusive) break;
    }
    d_.tried[index].note += fmt::format(": {}", result.reason);
    d_.verdict = Verdict::inconclusive;
    if (result.verdict == Verdict::reproduced || result.oracle == OracleAnswer::hit) {
      d_.reason =
          "the bug occurs without faults: the oracle found it in a control run, so no fault can be identified as its "
          "cause; check whether the oracle examines only this run, or whether the workload alone triggers the bug";
      return false;
    }
    if (result.verdict == Verdict::inconclusive) {
      d_.reason = fmt::format("the control run without faults was inconclusive twice: {}",
                              result.reason.empty() ? "no reason was given" : result.reason);
      return false;
    }
    // The plan assumed the longest possible workload. Make it again now that the duration is known.
    const trace::Meta& meta = result.trace.meta;
    std::int64_t length = static_cast<std::int64_t>(result.seconds * 1e9);
    if (meta.workload_ts > 0 && meta.end_ns > meta.workload_ts) length = meta.end_ns - meta.workload_ts;
    if (length > 0) {
      ROSE_TRY(d_.plan, make_plan(inputs_, length));
    }
    ROSE_TRY(RestartRuns restarts, survey_restarts(inputs_, d_.plan, lab_, length));
    if (restarts.learnt) {
      ROSE_TRY(d_.plan, make_plan(inputs_, length, &restarts.restarts));
    }
    d_.plan.notes.insert(d_.plan.notes.end(), restarts.notes.begin(), restarts.notes.end());
    restart_hits_ = std::move(restarts.hits);
    world_.workload_ns = length;
    d_.workload_ns = result.workload_end_ns.value_or(0);
    world_.survey.trace = std::move(result.trace);
    return true;
  }

  // The schedules that probably follow the control run, for runners that make runs ahead of time.
  Result<std::vector<Schedule>> after_controls(std::size_t room) const {
    World guess = world_;
    ROSE_CHECK(look_at_production(guess, d_.plan));
    std::vector<Schedule> next;
    if (world_.uses("survey") && (world_.level(1) || world_.level(2)))
      if (std::optional<Schedule> survey = survey_schedule(guess)) next.push_back(*std::move(survey));
    for (Schedule& each_schedule : first_trials(guess, room - std::min(room, next.size())))
      next.push_back(std::move(each_schedule));
    return next;
  }
  std::vector<Schedule> first_trials(World& world, std::size_t room) const {
    const Moves moves = moves_of(world);
    return forecast_misses(world, lab_, moves, {}, {}, 0, room);
  }

  Result<void> look_at_production(World& world, const Plan& plan) const {
    ROSE_TRY(const NodeMap nodes, NodeMap::make(inputs_));
    for (int i = 0; i < nodes.count(); ++i) world.node_numbers.emplace(nodes.name(i), i);
    world.contexts.emplace(inputs_, nodes);
    world.plan = plan;
    return {};
  }

  // Reads what the nodes did in production, surveys the test deployment, and creates all moves. The survey comes after
  // the first trial if only one run is made at a time and a simple trial is the best: an engineer waits for the first
  // reproduction, and the first candidate of a plan is usually the cause.
  Result<void> prepare() {
    ROSE_CHECK(look_at_production(world_, d_.plan));
    feedback_.emplace(d_.plan, world_.survey.trace);
    survey_due_ = world_.uses("survey") && (world_.level(1) || world_.level(2));
    if (survey_due_ && lab_.jobs() > 1) return survey();
    begin_moves();
    if (survey_due_ && !first_is_simple()) return survey();
    warn_by_survey();
    return {};
  }

  // True if the best trial is one of level 1 with few faults. Such a trial needs no knowledge about the test
  // deployment.
  bool first_is_simple() {
    Move* best = most_promising({}).first;
    const NextTrial t = best == nullptr ? nullptr : best->peek();
    return t != nullptr && t->level == 1 && !t->many && !t->exploratory;
  }

  Result<void> survey() {
    survey_due_ = false;
    if (const std::size_t room = lab_.room(); room > 0) {
      World guess = world_;
      lab_.expect(first_trials(guess, room));
    }
    ROSE_CHECK(make_survey(world_, lab_));
    warn_by_survey();
    // Make the moves again, now that it is known what the test deployment does. The outcomes of trials that have been
    // run already are taken from the record. Moves that refine a schedule which reproduced the bug stay.
    for (RunningTrial& trial : doubted_)
      if (std::any_of(moves_.begin(), moves_.begin() + first_moves_,
                      [&](const std::unique_ptr<Move>& move) { return move.get() == trial.move; }))
        trial.move = nullptr;
    Moves refining(std::make_move_iterator(moves_.begin() + first_moves_), std::make_move_iterator(moves_.end()));
    begin_moves();
    std::move(refining.begin(), refining.end(), std::back_inserter(moves_));
    return {};
  }
  void begin_moves() {
    moves_ = moves_of(world_);
    first_moves_ = static_cast<std::ptrdiff_t>(moves_.size());
  }
  void warn_by_survey() {
    std::vector<std::string>& all = d_.plan.warnings;
    for (std::string& warning : warnings_of_survey(world_))
      if (std::find(all.begin(), all.end(), warning) == all.end()) all.push_back(std::move(warning));
  }

  // Creates all moves; `world` must outlive them. Sets the schedules of the world's plan to the plain trials.
  Moves moves_of(World& world) const {
    Moves moves;
    std::vector<Trial> plain = plain_trials(world);
    world.plan.schedules.clear();
    for (const Trial& t : plain) world.plan.schedules.push_back(t.schedule);
    for (Trial& t : rare_trials(world))
      if (t.level == 1) plain.push_back(std::move(t));
    for (Trial& t : limit_trials(world)) plain.push_back(std::move(t));
    for (Trial& t : replica_trials(world, plain)) plain.push_back(std::move(t));
    if (world.level(1)) {
      moves.push_back(plain_move(world, std::move(plain)));
      if (world.uses("groups")) moves.push_back(call_group_move(world));
    }
    for (std::unique_ptr<Move>& move : before_moves(world)) moves.push_back(std::move(move));
    if (world.level(2)) {
      for (std::unique_ptr<Move>& move : nth_moves(world)) moves.push_back(std::move(move));
      for (std::unique_ptr<Move>& move : context_moves(world)) moves.push_back(std::move(move));
      std::vector<Trial> further = call_context_trials(world);
      for (Trial& t : elsewhere_trials(world)) further.push_back(std::move(t));
      for (Trial& t : rare_trials(world))
        if (t.level == 2) further.push_back(std::move(t));
      moves.push_back(plain_move(world, std::move(further)));
    }
    // Only equally promising trials depend on this order.
    order_equals(moves, options_.seed, [](const auto&, const auto&) { return true; });
    return moves;
  }

  // --- the loop

  // What the search looks for: a schedule that reaches the target; or, after one was accepted, one that reproduces a
  // failure more similar to production's, or a more reliable one.
  enum class Purpose { reach, more_similar, more_reliable };

  struct RunningTrial {
    Move* move = nullptr;  // the move that proposed it; nullptr: another run of a schedule that missed
    Trial what;
    std::size_t tried = 0;  // index into d_.tried
    bool runs = true;       // false: the schedule was run before, and its outcome is known
    int schedules = 0;      // number of schedules tried, including this one
    bool armed = true;
    RunResult result;
    // trials armed in the same run (window.h); only the first that fires counts as tried
    std::vector<Alternative> alternatives;
  };

  [[nodiscard]] int left() const {
    return purpose_ == Purpose::reach ? lab_.left() : std::min(lab_.left(), until_ - d_.runs);
  }

  // Returns true when a schedule passed its screening, or its test for Purpose::more_reliable; this schedule is
  // leads_.back().
  Result<bool> search() {
    while (left() > 0) {
      if (survey_due_ && d_.schedules > 0) ROSE_CHECK(survey());
      if (!doubted_.empty() && d_.runs >= doubted_until_) {
        ROSE_TRY(const bool reached, follow_doubted());
        if (reached) return true;
        continue;
      }
      if (Lead* lead = best_waiting()) {
        Lead resumed = std::move(*lead);
        waiting_.erase(waiting_.begin() + (lead - waiting_.data()));
        ROSE_CHECK(confirm(resumed, false));
        if (tested(std::move(resumed), false)) return true;
        continue;
      }
      // No further schedule may be tested, so it would be useless to find another one that reproduces the bug.
      if (confirmation_.tests() >= kMostTests) return false;
      std::vector<RunningTrial> batch = pick();
      if (batch.empty() && doubted_.empty()) return false;
      if (batch.empty()) {
        doubted_until_ = d_.runs;
        continue;
      }
      ROSE_CHECK(make(batch));
      const auto stopped = std::stable_partition(batch.begin(), batch.end(),
                                                 [](const RunningTrial& trial) { return !trial.result.stopped; });
      std::move(stopped, batch.end(), std::back_inserter(stopped_));
      batch.erase(stopped, batch.end());
      for (RunningTrial& trial : batch) {
        if (!trial.alternatives.empty()) take_first(trial);
        learn(trial);
      }
      for (RunningTrial& trial : batch) {
        if (!trial.runs || trial.result.verdict != Verdict::reproduced) continue;
        if (purpose_ == Purpose::more_similar && !resembles_incident(inputs_, d_, d_.tried[trial.tried])) {
          d_.tried[trial.tried].note += "; it may be another failure, like the accepted one";
          continue;
        }
        if (doubtful(trial)) {
          d_.tried[trial.tried].note +=
              "; it may be another failure, because none of the evidence was reproduced, or the workload ended far too "
              "soon: other trials come first";
          doubted_.push_back(std::move(trial));
          continue;
        }
        ROSE_TRY(const bool reached, follow(trial));
        if (reached) return true;
      }
    }
    return false;
  }

  // The lead whose screening was put aside and should continue, because no trial is more promising; nullptr if there is
  // none.
  Lead* best_waiting() {
    if (waiting_.empty() || purpose_ == Purpose::more_reliable) return nullptr;
    const auto best = std::max_element(waiting_.begin(), waiting_.end(), [&](const Lead& a, const Lead& b) {
      return worth_of_test(a) < worth_of_test(b);
    });
    if (confirmation_.tests() >= kMostTests) return &*best;
    for (const std::unique_ptr<Move>& move : moves_)
      if (const NextTrial t = move->peek();
          t != nullptr && world_.level(t->level) && worth_of(world_, lab_, *t) > worth_of_test(*best))
        return nullptr;
    return &*best;
  }
  [[nodiscard]] double worth_of_test(const Lead& lead) const {
    return confirmation_.chance_of_target(lead) / std::max(1, schedule::kMostTestRuns - lead.tally.conclusive());
  }

  // The move whose next trial is worth most, and what this trial is worth; nullptr if there is none. Moves in `without`
  // are skipped.
  std::pair<Move*, double> most_promising(const std::set<const Move*>& without) const {
    std::pair<Move*, double> best{nullptr, 0};
    for (const std::unique_ptr<Move>& move : moves_) {
      const NextTrial t = move->peek();
      if (t == nullptr || !world_.level(t->level) || without.contains(move.get())) continue;
      const double worth = worth_of(world_, lab_, *t);
      if (best.first == nullptr || worth > best.second) best = {move.get(), worth};
    }
    return best;
  }

  // Selects the best trials of all moves, as many as may run in parallel. The outcomes of trials whose schedule was run
  // before are taken from the record at once.
  std::vector<RunningTrial> pick() {
    std::vector<RunningTrial> batch;
    // moves that have trials in a window of this batch; these trials are taken only after the run
    std::set<const Move*> in_window;
    const int most = std::min(lab_.jobs(), left());
    int runs = 0;
    while (runs < most && !stopped_.empty()) {
      batch.push_back(std::move(stopped_.front()));
      stopped_.erase(stopped_.begin());
      for (const Alternative& alternative : batch.back().alternatives) in_window.insert(alternative.move);
      ++runs;
    }
    while (runs < most) {
      const auto [best, most_worth] = most_promising(in_window);
      const auto running = [&](std::size_t tried) {
        return std::any_of(batch.begin(), batch.end(),
                           [&](const RunningTrial& other_trial) { return other_trial.tried == tried; });
      };
      // A schedule that missed cannot be more reliable than the accepted one.
      Misses::Missed* missed =
          repeats_ < kMostRepeats && purpose_ != Purpose::more_reliable ? misses_.best(d_.tried, running) : nullptr;
      if (missed != nullptr &&
          (best == nullptr || missed->yield / lab_.cost(d_.tried[missed->tried].schedule) > most_worth)) {
        batch.push_back(repeat(*missed));
        ++runs;
        continue;
      }
      if (best == nullptr) break;
      if (ruled_out(inputs_, world_.plan, best->peek()->schedule)) {
        skip(*best);
        continue;
      }
      RunningTrial trial;
      trial.move = best;
      trial.what = *best->peek();
      if (std::optional<Pair> pair = pair_before(trial.what, in_window); pair && pair->move->take_one(pair->what)) {
        trial.move = pair->move;
        trial.what = std::move(pair->what);
      } else {
        if (std::optional<RunningTrial> several = window_of(*best, in_window)) {
          batch.push_back(*std::move(several));
          ++runs;
          continue;
        }
        best->take();
      }
      const Lab::Entry entry = lab_.enter(trial.what.schedule, trial.what.level, trial.what.why);
      trial.tried = entry.index;
      trial.runs = entry.fresh;
      if (entry.fresh && !trial.what.exploratory) ++d_.schedules;
      trial.schedules = d_.schedules;
      runs += trial.runs ? 1 : 0;
      batch.push_back(std::move(trial));
      // Learn a known outcome at once, because it may change the next selection.
      if (!batch.back().runs) {
        learn(batch.back());
        batch.pop_back();
      }
    }
    return batch;
  }

  struct Pair {
    Move* move = nullptr;
    Trial what;
  };
  // The best pair of faults to try before `deep`, which is a trial of level 2 or 3 for one of the two faults. Runs with
  // either fault alone did not reproduce the bug, and in the dump both faults occurred within the duration of one run.
  // A failure that needs both cannot be reproduced by any of the many trials of level 2 and 3 for one of them, and the
  // pair takes only one run.
  std::optional<Pair> pair_before(const Trial& deep, const std::set<const Move*>& in_window) const {
    if (deep.level < 2 || purpose_ != Purpose::reach || !world_.uses("pairs-first")) return std::nullopt;
    const Hypothesis of_deep = hypothesis_of(world_.plan, deep.schedule);
    std::optional<Pair> best;
    for (const std::unique_ptr<Move>& move : moves_) {
      if (in_window.contains(move.get())) continue;
      for (const NextTrial& t : move->peek_all()) {
        if (t->level != 1 || t->many || t->repeat || t->schedule.faults.size() != 2 || lab_.knows(t->schedule) ||
            (best && t->yield <= best->what.yield) || !world_.level(1) || ruled_out(inputs_, world_.plan, t->schedule))
          continue;
        const Hypothesis both = hypothesis_of(world_.plan, t->schedule);
        if (both.size() != 2 ||
            !std::any_of(both.begin(), both.end(), [&](const auto& id) { return of_deep.contains(id); }) ||
            !std::all_of(both.begin(), both.end(), [&](const auto& id) { return missed_alone(id); }) ||
            !occurred_together(t->schedule))
          continue;
        best = Pair{move.get(), *t};
      }
    }
    return best;
  }
  [[nodiscard]] bool missed_alone(const std::string& id) const {
    const Hypothesis alone{id};
    return std::any_of(d_.tried.begin(), d_.tried.end(), [&](const Tried& tried) {
      return tried.tally.not_reproduced > 0 && hypothesis_of(world_.plan, tried.schedule) == alone;
    });
  }
  [[nodiscard]] bool occurred_together(const Schedule& schedule) const {
    std::int64_t first = INT64_MAX, last = INT64_MIN;
    for (const Fault& fault : schedule.faults) {
      const Candidate* c = candidate_for(world_.plan, fault);
      if (c == nullptr) return false;
      first = std::min(first, c->first_ts);
      last = std::max(last, c->first_ts);
    }
    return last - first <= longest_workload(*inputs_.config);
  }

  // Skips a schedule that the user has ruled out: the move that proposed the schedule learns that it missed.
  void skip(Move& move) {
    const Trial t = *move.peek();
    move.take();
    const RunResult miss = plain_miss(t.schedule);
    TrialOutcome outcome;
    outcome.fresh = false;
    outcome.result = &miss;
    move.learn(t, outcome);
    for (std::unique_ptr<Move>& child : move.offspring()) moves_.push_back(std::move(child));
  }

  // A run with several alternatives: the best trial and the next trials, if their injection points may not be reached.
  // Nothing if the best trial should run alone.
  std::optional<RunningTrial> window_of(Move& best, std::set<const Move*>& in_window) {
    if (window_.size() < 2 || purpose_ == Purpose::more_reliable || !world_.uses("window")) return std::nullopt;
    const NextTrial first = best.peek();
    if (!may_be_unreached(world_, *first) || lab_.knows(first->schedule)) return std::nullopt;
    std::vector<std::pair<double, Alternative>> others;
    for (const std::unique_ptr<Move>& move : moves_) {
      if (in_window.contains(move.get())) continue;
      for (const NextTrial& t : move->peek_all())
        if (world_.level(t->level) && may_be_unreached(world_, *t) && !lab_.knows(t->schedule) &&
            !ruled_out(inputs_, world_.plan, t->schedule))
          others.emplace_back(worth_of(world_, lab_, *t), Alternative{move.get(), *t});
    }
    std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Alternative> all{{&best, *first}};
    std::set<std::string> similar{schedule::fingerprint(first->schedule)};
    for (auto& [worth, other] : others)
      if (all.size() < window_.size() && similar.insert(schedule::fingerprint(other.what.schedule)).second)
        all.push_back(std::move(other));
    if (all.size() < 2) return std::nullopt;
    RunningTrial trial;
    trial.what = in_one(all, inputs_.config->name);
    const Lab::Entry entry = lab_.enter(trial.what.schedule, trial.what.level, trial.what.why);
    if (!entry.fresh) return std::nullopt;
    trial.tried = entry.index;
    trial.schedules = ++d_.schedules;
    for (const Alternative& alternative : all) in_window.insert(alternative.move);
    trial.alternatives = std::move(all);
    return trial;
  }

  // Evaluates a run with alternatives. The alternative that fired counts as if it had run alone. The other alternatives
  // were withdrawn, and count as not tried. If none fired, all count as missed.
  void take_first(RunningTrial& trial) {
    const std::vector<Alternative> all = std::exchange(trial.alternatives, {});
    const std::size_t first = first_of(all, trial.result);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (first < all.size() ? i != first : trial.result.oracle == OracleAnswer::unknown) continue;
      const Trial& t = all[i].what;
      const std::size_t entry = lab_.enter(t.schedule, t.level, t.why).index;
      RunResult& known = last_results_[entry] = as_if_alone(all, i, trial.result);
      d_.tried[entry].note +=
          first < all.size() ? fmt::format("; it was reached first of {} alternatives: {}", all.size(), known.reason)
                             : fmt::format("; it was not reached, as one of {} alternatives", all.size());
      // If the move does not propose the trial any more, because it learned other outcomes of this batch, the outcome
      // stays in the record until the move proposes the trial again.
      const bool same = all[i].move->take_one(t);
      if (i == first) {
        known.trace = std::move(trial.result.trace);
        trial.result = std::move(known);
        trial.tried = entry;
        trial.what = t;
        trial.move = same ? all[i].move : nullptr;
      } else if (same) {
        TrialOutcome outcome;
        outcome.fresh = false;
        outcome.result = &known;
        all[i].move->learn(t, outcome);
        for (std::unique_ptr<Move>& move : all[i].move->offspring()) moves_.push_back(std::move(move));
      }
    }
  }

  RunningTrial repeat(Misses::Missed& missed) {
    ++repeats_;
    Misses::take(missed);
    RunningTrial trial;
    trial.tried = missed.tried;
    trial.what.schedule = d_.tried[missed.tried].schedule;
    trial.what.level = missed.level;
    trial.what.repeat = true;
    trial.what.yield = missed.yield;
    trial.schedules = d_.schedules;
    return trial;
  }

  Result<void> make(std::vector<RunningTrial>& batch) {
    std::vector<std::size_t> todo;
    // Trials with many faults. They are not repeated if they are inconclusive, because a trial with fewer faults
    // follows instead.
    std::set<std::size_t> once;
    for (const RunningTrial& trial : batch) {
      todo.push_back(trial.tried);
      if (trial.what.many) once.insert(trial.tried);
    }
    if (const std::size_t room = lab_.room(); room > 0) lab_.expect(after_misses(batch, room));
    const Trial& first = batch[0].what;
    lab_.level = first.level;
    const std::string doing =
        fmt::format("{}: {}{}", first.repeat ? "trying again" : "trying",
                    first.exploratory ? first.why : short_words(first.schedule),
                    batch.size() > 1 ? fmt::format(" (and {} more in parallel)", batch.size() - 1) : "");
    const Decides decides = [&](std::size_t i, const RunResult& result) { return ends_batch(batch[i], result); };
    ROSE_TRY(std::vector<Lab::Made> made,
             first.exploratory ? lab_.run(todo, doing) : lab_.run_judged(todo, doing, once, decides));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].armed = made[i].armed;
      batch[i].result = std::move(made[i].result);
      Tried& entry = d_.tried[batch[i].tried];
      const std::string& reason = batch[i].result.reason;
      if (!reason.empty() && !batch[i].what.exploratory && entry.note.find(reason) == std::string::npos)
        entry.note += fmt::format("; {}", reason);
    }
    return {};
  }

  // True if the runner should stop the less likely trials of the batch because this one reproduced the bug: the user
  // waits for the schedule, and a run that hangs because of its fault takes a minute. Stopped trials count as not
  // started. Several threads may call this while the search waits for the batch.
  [[nodiscard]] bool ends_batch(const RunningTrial& trial, const RunResult& result) const {
    if (result.verdict != Verdict::reproduced || purpose_ == Purpose::more_reliable || trial.what.exploratory)
      return false;
    if (!world_.uses("doubt")) return true;
    Tried seen = d_.tried[trial.tried];
    note_hit(seen, result);
    return resembles_incident(inputs_, d_, seen);
  }

  std::vector<Schedule> after_misses(const std::vector<RunningTrial>& batch, std::size_t room) const {
    std::vector<PendingTrial> pending;
    const auto running = [&](std::size_t tried) {
      return std::any_of(batch.begin(), batch.end(),
                         [&](const RunningTrial& other_trial) { return other_trial.tried == tried; });
    };
    std::vector<Retry> retries = misses_.retries(d_.tried, running);
    for (const RunningTrial& trial : batch) {
      if (trial.move != nullptr) pending.push_back({trial.move, &trial.what});
      if (!trial.what.exploratory && !trial.what.repeat)
        retries.push_back({&trial.what.schedule, trial.what.yield * kRepeatYield, 1});
    }
    return forecast_misses(world_, lab_, moves_, pending, retries,
                           purpose_ != Purpose::more_reliable ? kMostRepeats - repeats_ : 0, room);
  }

  void learn(RunningTrial& trial) {
    TrialOutcome outcome;
    outcome.fresh = trial.runs;
    RunResult& known = last_results_[trial.tried];
    if (trial.runs) {
      outcome.result = &trial.result;
      if (feedback_ && world_.uses("feedback") && !trial.what.exploratory &&
          trial.result.oracle != OracleAnswer::unknown) {
        std::set<std::string> signs = signs_of(trial.result.trace);
        signs.insert(trial.result.messages_seen.begin(), trial.result.messages_seen.end());
        outcome.observables = feedback_->share(signs);
        if (trial.result.oracle == OracleAnswer::miss) feedback_->missed(tested_part(trial), signs);
        world_.factors = feedback_->factors();
        for (const auto& [id, factor] : lead_factors_)
          world_.factors[id] = factor * (world_.factors.contains(id) ? world_.factors[id] : 1);
      }
      remember_miss(trial, outcome.observables);
      if (trial.what.many && trial.result.oracle == OracleAnswer::miss)
        for (const schedule::FaultOutcome& of_fault : trial.result.faults)
          if (of_fault.effective()) world_.missed_in_group.insert(of_fault.id);
    } else {
      outcome.result = &known;
    }
    if (trial.move != nullptr) {
      trial.move->learn(trial.what, outcome);
      for (std::unique_ptr<Move>& move : trial.move->offspring()) moves_.push_back(std::move(move));
    }
    if (!trial.runs) return;
    const std::vector<schedule::FaultOutcome>& came = trial.result.faults;
    if (trial.armed && !trial.what.exploratory && trial.result.oracle == OracleAnswer::miss &&
        std::none_of(came.begin(), came.end(),
                     [](const schedule::FaultOutcome& other_outcome) { return other_outcome.fired; }))
      window_.nothing_fired();
    trace::Trace trace = std::exchange(trial.result.trace, {});
    known = trial.result;
    trial.result.trace = std::move(trace);
  }

  // The schedule without the faults that fired without effect, because the miss proves nothing about them.
  static Schedule tested_part(const RunningTrial& trial) {
    Schedule part = trial.what.schedule;
    std::erase_if(part.faults, [&](const Fault& fault) {
      const FaultOutcome* outcome = outcome_of(trial.result, fault.id);
      return outcome != nullptr && outcome->fired && !outcome->effective();
    });
    return part;
  }

  void remember_miss(const RunningTrial& trial, double observables) {
    // True for an inconclusive run that run_judged() did not repeat, because another run of the batch reproduced the
    // bug.
    const bool unclear = trial.armed && !trial.what.many && trial.result.oracle == OracleAnswer::unknown &&
                         d_.tried[trial.tried].tally.runs() == 1;
    if ((trial.result.verdict != Verdict::not_reproduced && !unclear) || trial.what.exploratory || trial.what.repeat)
      return;
    // Without a dump, the only observables are log messages. An injected failure causes its messages at whatever moment
    // it is injected, so these messages do not show that the moment was right.
    if (!inputs_.recorded()) observables = 0;
    std::string moment = schedule::fingerprint(trial.what.schedule);
    if (world_.uses("moments"))
      if (std::optional<std::string> found = moment_of(trial.what.schedule, trial.result)) moment = *std::move(found);
    misses_.add(std::move(moment), trial.tried, trial.what.level,
                trial.what.yield * kRepeatYield * (1 + kRepeatObservables * observables));
  }

  // --- a schedule that reproduced the bug

  // True if the run may have reproduced another failure (resembles_incident()) and its schedule should be tested later:
  // for up to kMostOthers runs after the first such hit, other trials come first. From then on, faults that messages
  // report are preferred to guesses.
  bool doubtful(const RunningTrial& trial) {
    if (!world_.uses("doubt") || purpose_ == Purpose::more_reliable ||
        resembles_incident(inputs_, d_, d_.tried[trial.tried]))
      return false;
    if (doubted_until_ == 0) {
      doubted_until_ = d_.runs + std::min(kMostOthers, lab_.left() / 3);
      for (const Candidate& c : d_.plan.candidates)
        if (!inputs_.recorded() && c.plainness >= kLeastReported) {
          lead_factors_[c.fault.id] = kLeadFactor;
          world_.factors[c.fault.id] = kLeadFactor;
        }
    }
    return d_.runs < doubted_until_;
  }

  // Confirms planned restarts that reproduced the bug, like any other schedule.
  Result<bool> follow_restarts() {
    for (RestartRuns::Hit& hit : restart_hits_) {
      RunningTrial trial;
      trial.tried = hit.tried;
      trial.what.schedule = d_.tried[hit.tried].schedule;
      trial.what.level = d_.tried[hit.tried].level;
      trial.schedules = ++d_.schedules;
      trial.result = std::move(hit.result);
      if (doubtful(trial)) {
        doubted_.push_back(std::move(trial));
        continue;
      }
      ROSE_TRY(const bool reached, follow(trial));
      if (reached) return true;
    }
    return false;
  }

  Result<bool> follow_doubted() {
    const RunningTrial trial = std::move(doubted_.front());
    doubted_.erase(doubted_.begin());
    return follow(trial);
  }

  // Narrows down and confirms a schedule that reproduced the bug. Returns true if it passed (see search()).
  Result<bool> follow(const RunningTrial& trial) {
    Lead lead;
    lead.schedule = trial.what.schedule;
    lead.level = trial.what.level;
    lead.schedules = trial.schedules;
    lead.tried = trial.tried;
    lead.first_run = d_.runs;
    lead.remember(trial.result);
    lab_.reproduced(trial.tried);
    if (inputs_.stop_after == StopAfter::found) {
      leads_.push_back(std::move(lead));
      return true;
    }
    if (trial.what.many && world_.uses("narrowing")) ROSE_CHECK(confirmation_.narrow(lead, world_.uses("doubt")));
    std::string moment = schedule::fingerprint(lead.schedule);
    if (lead.tried == trial.tried && world_.uses("moments"))
      if (std::optional<std::string> found = moment_of(lead.schedule, trial.result)) moment = *std::move(found);
    if (!tested_.insert(moment).second) return false;
    const std::set<std::string> ids = fault_ids(lead.schedule);
    if (confirmation_.tests() >= kMostTests || tests_by_faults_[ids] >= kMostTestsOfSameFaults) {
      d_.tried[lead.tried].note += "; not tested, because many other schedules were tested";
      return false;
    }
    ++tests_by_faults_[ids];
    ROSE_CHECK(confirm(lead, true));
    if (!lead.waits) return tested(std::move(lead), true);
    d_.tried[lead.tried].note += fmt::format("; {} of {} confirming runs: more promising trials come first",
                                             lead.tally.reproduced, lead.tally.conclusive());
    refine_from(lead);
    waiting_.push_back(std::move(lead));
    return false;
  }

  // Screens the lead. In the search for a more reliable schedule, makes the final test of the lead at once instead.
  Result<void> confirm(Lead& lead, bool may_wait) {
    if (purpose_ == Purpose::more_reliable) {
      lead.count({});  // the test needs fresh runs
      return confirmation_.test(lead, schedule::kMostTestRuns, true);
    }
    return confirmation_.screen(lead, may_wait);
  }

  // Records the lead. Returns true if it passed; otherwise, if `proceed` is true, adds moves that refine it.
  bool tested(Lead lead, bool proceed) {
    leads_.push_back(std::move(lead));
    const Lead& last = leads_.back();
    if (last.accepted || last.promising) return true;
    d_.tried[last.tried].note +=
        fmt::format("; below the target: {} of {} confirming runs", last.tally.reproduced, last.tally.conclusive());
    if (proceed && last.tally.reproduced > 0) refine_from(last);
    return false;
  }

  // Adds moves that refine a schedule which reproduces the bug too rarely, and raises the weights of its faults,
  // because it is the best base for further trials.
  void refine_from(const Lead& lead) {
    for (const Fault& fault : lead.schedule.faults) {
      lead_factors_[fault.id] = kLeadFactor;
      world_.factors[fault.id] = kLeadFactor;
    }
    if (world_.level(1))
      for (std::vector<Trial>& trials :
           std::vector{other_times(world_, lead.schedule), other_lengths(world_, lead.schedule),
                       limit_trials(world_, &lead.schedule)})
        if (!trials.empty()) moves_.push_back(plain_move(world_, std::move(trials)));
    if (world_.level(2)) {
      for (std::unique_ptr<Move>& move : context_moves(world_, &lead.schedule)) moves_.push_back(std::move(move));
      if (std::vector<Trial> trials = elsewhere_trials(world_, &lead.schedule); !trials.empty())
        moves_.push_back(plain_move(world_, std::move(trials)));
      for (const Fault& fault : lead.schedule.faults)
        if (hits_by_count(fault.kind) && fault.count == 1)
          if (std::unique_ptr<Move> move = nth_move(world_, lead.schedule, fault.id, kLead * kShareNth,
                                                    "the schedule reproduced the bug, but too rarely"))
            moves_.push_back(std::move(move));
    }
    if (!world_.level(3)) return;
    const bool any_timed = std::any_of(lead.schedule.faults.begin(), lead.schedule.faults.end(), waits_only_for_time);
    for (const Fault& fault : lead.schedule.faults) {
      if (!lead.fired.contains(fault.id)) continue;
      // Refine a fault at a fixed time only once, because the same kinds of calls would follow it at any other fixed
      // time.
      if (waits_only_for_time(fault) && !refined_at_time_.insert(fault.id).second) continue;
      const double prior = kLead * kSharePlace * (any_timed && !waits_only_for_time(fault) ? kUntimedFault : 1);
      if (std::unique_ptr<Move> move = place_move(world_, lead.schedule, fault.id, prior))
        moves_.push_back(std::move(move));
    }
  }

  // If the accepted schedule may reproduce another failure (in production a node ended itself, but not in the runs of
  // this schedule), looks for a schedule that reproduces production's failure.
  Result<void> find_more_similar(Lead& found) {
    const auto similar = [&](const Lead& lead) { return resembles_incident(inputs_, d_, d_.tried[lead.tried]); };
    if (!world_.uses("doubt") || !inputs_.recorded() || similar(found)) return {};
    doubted_.clear();
    std::erase_if(waiting_, [&](const Lead& lead) { return !similar(lead); });
    return look_for(Purpose::more_similar, std::max(0, std::min(kMostSimilar, lab_.left() - options_.confirm_runs)),
                    found, similar, ", but it may be another failure; a failure closer to production was found then");
  }

  // Looks for a schedule that is more reliable than the accepted one, which sometimes misses. Assumption: the faults of
  // the accepted schedule that are injected at fixed times do not always hit the right point of the execution, and will
  // hit it less often on a busier or slower machine. A schedule that waits for an event at that point, or that does not
  // depend on a time, is more reliable.
  Result<void> find_more_reliable(Lead& found) {
    if (!world_.uses("surer") || inputs_.stop_after != StopAfter::minimised) return {};
    if (std::exchange(looked_for_reliable_, true)) return {};
    if (survey_due_) ROSE_CHECK(survey());
    Misses misses = std::exchange(misses_, {});
    Moves moves = std::exchange(moves_, {});
    std::vector<RunningTrial> stopped = std::exchange(stopped_, {});
    doubted_.clear();
    refine_from(found);
    if (world_.level(1))
      if (std::vector<Trial> trials = untimed(found); !trials.empty())
        moves_.push_back(plain_move(world_, std::move(trials)));
    // Limit the runs to what the misses would cost the user: a schedule of rate r needs 1/r runs for each reproduction,
    // so kFutureRuns reproductions take kFutureRuns * (1/r - 1) additional runs.
    const double worth = std::ceil(kFutureRuns * (1 / std::max(found.tally.rate(), 0.01) - 1));
    const int left = confirmation_.left_for(found) - schedule::RateTest(options_.target_rate).perfect();
    const int most =
        static_cast<int>(std::min<double>({kMostReliability, worth, std::max<double>(left, kLeastReliability)}));
    const int first_run = found.first_run;
    ROSE_CHECK(look_for(
        Purpose::more_reliable, most, found, [&](const Lead& lead) { return better(lead, found); },
        "; then a more reliable schedule was found"));
    found.first_run = first_run;
    misses_ = std::move(misses);
    moves_ = std::move(moves);
    stopped_ = std::move(stopped);
    return {};
  }

  // Continues the search for at most `most` runs. A schedule for which `fits` is true replaces the found one. `then`:
  // the end of the note in the record of the schedule that is replaced.
  Result<void> look_for(Purpose purpose, int most, Lead& found, const std::function<bool(const Lead&)>& fits,
                        std::string_view then) {
    purpose_ = purpose;
    until_ = d_.runs + most;
    while (left() > 0) {
      ROSE_TRY(const bool reached, search());
      if (!reached) break;
      if (!fits(leads_.back())) continue;
      d_.tried[found.tried].note +=
          fmt::format("; accepted with {} of {}{}", found.tally.reproduced, found.tally.conclusive(), then);
      found = leads_.back();
      as_found_ = Found{.lead = found};
      break;
    }
    purpose_ = Purpose::reach;
    return {};
  }

  // Trials in which a fault of the lead hits its first matching call instead of the first one after a fixed time.
  std::vector<Trial> untimed(const Lead& lead) const {
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < lead.schedule.faults.size(); ++i) {
      const Fault& fault = lead.schedule.faults[i];
      if (!hits_by_count(fault.kind) || fault.when.empty() || fault.when[0].kind != ConditionKind::elapsed) continue;
      Trial t;
      t.schedule = lead.schedule;
      t.schedule.faults[i].when.erase(t.schedule.faults[i].when.begin());
      t.yield = kLead * kShareCall;
      t.why = fmt::format("{} does not wait for a time: it reproduced the bug, but not always", fault.id);
      trials.push_back(std::move(t));
    }
    return trials;
  }

  // --- simplification, then the rate, measured by runs that influence no choice

  Result<void> finish(const Lead& found) {
    final_ = Found{.lead = found};
    if (found.accepted || found.promising) {
      conclusion_.conclude(final_);
      as_found_ = final_;
      lab_.found = true;
    }
    return refinement_.refine(*final_, found);
  }

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  Diagnosis d_;
  Lab lab_;
  Confirmation confirmation_{inputs_, lab_, d_};
  Conclusion conclusion_{inputs_, lab_, d_};
  World world_;
  Refinement refinement_{inputs_, world_, lab_, confirmation_, d_};
  std::optional<Feedback> feedback_;
  Moves moves_;
  std::ptrdiff_t first_moves_ = 0;                 // number of moves, at the front of moves_, that moves_of() made
  bool survey_due_ = false;                        // the survey is wanted and was not made yet
  std::map<std::size_t, RunResult> last_results_;  // by index into d_.tried: the last result, without its trace
  Misses misses_;
  Window window_;
  int repeats_ = 0;  // further runs of schedules that missed
  std::vector<Lead> leads_;
  std::vector<Lead> waiting_;          // leads whose screening was put aside
  std::vector<RunningTrial> doubted_;  // hits that are not tested yet, because they may reproduce another failure
  std::vector<RunningTrial> stopped_;  // trials whose runs were stopped, because another one reproduced the bug
  int doubted_until_ = 0;  // number of runs up to which other trials precede doubted_; 0: no hit was doubted yet
  std::vector<RestartRuns::Hit> restart_hits_;
  std::set<std::string> tested_;  // moments of schedules that were tested
  std::map<std::set<std::string>, int> tests_by_faults_;
  std::set<std::string> refined_at_time_;  // faults at fixed times that were refined
  std::map<std::string, double> lead_factors_;
  bool looked_for_reliable_ = false;
  Purpose purpose_ = Purpose::reach;
  int until_ = 0;  // limit of runs for a purpose other than Purpose::reach
  std::optional<Found> final_;
  std::optional<Found> as_found_;  // the confirmed schedule before it was simplified
  std::optional<Found> decided_;   // the best of the schedules that failed the final test
};

}  // namespace

double worth_of(const World& world, const Lab& lab, const Trial& t) {
  // If a trial with many faults or calls reproduces the bug, narrowing it down takes further runs.
  const double later = t.many && world.uses("narrowing") ? t.yield * narrowing_runs(t.schedule) : 0;
  double worth = t.yield / (lab.cost(t.schedule) * (1 + later));
  if (!world.uses("turns")) worth += 10.0 * (3 - t.level);  // level after level, as in the paper
  return worth;
}

Result<Diagnosis> diagnose(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress) {
  ROSE_ASSERT(inputs.config != nullptr);
  return Search(inputs, runner, progress).run();
}

}  // namespace rose::diagnose
