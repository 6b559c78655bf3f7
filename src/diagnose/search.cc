// The search: a control run, a survey, then the best try of all moves, again and again; hits are narrowed down and tested,
// those below the target are gone on from, what is found is made simpler, and its rate is told from runs of its own.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "diagnose/feedback.h"
#include "diagnose/forecast.h"
#include "diagnose/lab.h"
#include "diagnose/move.h"
#include "diagnose/narrow.h"
#include "diagnose/nodes.h"
#include "diagnose/simplify.h"

namespace rose::diagnose {
namespace {

using schedule::RateTest;
using schedule::Series;
using schedule::Tally;
using schedule::Verdict;

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string short_words(const Schedule& schedule) {
  if (schedule.faults.empty()) return "no faults";
  if (schedule.faults.size() == 1) return schedule::in_words(schedule.faults[0]);
  std::string ids;
  for (const Fault& fault : schedule.faults) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", fault.id);
  return fmt::format("{} faults: {}", schedule.faults.size(), ids);
}

std::set<std::string> fault_ids(const Schedule& schedule) {
  std::set<std::string> ids;
  for (const Fault& fault : schedule.faults) ids.insert(fault.id);
  return ids;
}

// A schedule that showed the bug, and what testing it said.
struct Lead {
  Schedule schedule;
  int level = 1;
  int schedules = 0;             // tried until then
  std::size_t tried = 0;         // index into Diagnosis::tried
  Tally tally;                   // of the test
  bool accepted = false;
  std::set<std::string> fired;   // faults that fired in runs that reproduced
};

// A schedule that missed: chance may have missed the bug.
struct Missed {
  std::size_t tried = 0;
  int level = 1;
  double yield = 0;
  int runs = 1;
};

class Search {
 public:
  Search(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress)
      : inputs_(inputs), options_(inputs.config->diagnose), lab_(inputs, runner, progress, d_) {
    world_.inputs = &inputs;
    world_.config = inputs.config;
  }

  Result<Diagnosis> run() {
    ROSE_TRY(d_.plan, make_plan(inputs_));
    ROSE_TRY(const bool go_on, control_run());
    if (!go_on) return std::move(d_);
    if (d_.plan.candidates.empty()) return nothing_to_try();
    ROSE_CHECK(prepare());
    ROSE_TRY(const bool reached, search());
    if (!leads_.empty()) {
      if (!reached) std::stable_sort(leads_.begin(), leads_.end(), better);
      Lead best = reached ? leads_.back() : leads_.front();
      if (reached && best.tally.rate() < kSureRate) ROSE_CHECK(surer(best));
      ROSE_CHECK(finish(best));
    }
    for (const std::unique_ptr<Move>& move : moves_)
      if (std::string note = move->left_out(); !note.empty()) {
        d_.plan.notes.push_back(std::move(note));
        break;
      }
    conclude();
    return std::move(d_);
  }

 private:
  // --- runs without faults

  // False when the diagnosis ends here.
  Result<bool> control_run() {
    Schedule none;
    none.name = inputs_.config->name;
    const std::size_t index = lab_.enter(none, 0, "control run without faults").index;
    RunResult result;
    for (int attempt = 0; attempt < 2 && lab_.left() > 0; ++attempt) {
      ROSE_TRY(std::vector<Lab::Made> made, lab_.run({index}, attempt == 0 ? "control run without faults" : "control run without faults, again"));
      result = std::move(made[0].result);
      if (result.verdict != Verdict::inconclusive) break;
    }
    d_.tried[index].note += fmt::format(": {}", result.reason);
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
    world_.workload_ns = length;
    world_.survey.trace = std::move(result.trace);
    return true;
  }

  Diagnosis nothing_to_try() {
    d_.verdict = Verdict::inconclusive;
    d_.reason = d_.plan.failures == 0
                    ? std::string(inputs_.said.empty() ? "the dump holds no failure: nothing failed, fell silent or ended in its window"
                                                       : "neither the logs nor the run without faults hold anything to try: no message names a "
                                                         "failure, and no call of the nodes comes before one")
                    : fmt::format("nothing in the dump looks like a fault: all {} failures are normal or belong to no node; see "
                                  "'rose diagnose --plan'", d_.plan.failures);
    return std::move(d_);
  }

  // What the nodes did in production, and what the test deployment does; then all moves.
  Result<void> prepare() {
    ROSE_TRY(const NodeMap nodes, NodeMap::make(inputs_));
    for (int i = 0; i < nodes.count(); ++i) world_.node_numbers.emplace(nodes.name(i), i);
    world_.contexts.emplace(inputs_, nodes);
    world_.plan = d_.plan;
    feedback_.emplace(d_.plan, world_.survey.trace);
    if (world_.uses("survey") && (world_.level(1) || world_.level(2))) ROSE_CHECK(survey());
    std::vector<Try> plain = plain_tries(world_);
    world_.plan.schedules.clear();
    for (const Try& t : plain) world_.plan.schedules.push_back(t.schedule);
    for (Try& t : rare_tries(world_))
      if (t.level == 1) plain.push_back(std::move(t));
    for (Try& t : limit_tries(world_)) plain.push_back(std::move(t));
    if (world_.level(1)) {
      moves_.push_back(plain_move(world_, std::move(plain)));
      if (world_.uses("groups")) moves_.push_back(call_group_move(world_));
    }
    if (world_.level(2)) {
      for (std::unique_ptr<Move>& move : nth_moves(world_)) moves_.push_back(std::move(move));
      for (std::unique_ptr<Move>& move : context_moves(world_)) moves_.push_back(std::move(move));
      std::vector<Try> further = call_context_tries(world_);
      for (Try& t : rare_tries(world_))
        if (t.level == 2) further.push_back(std::move(t));
      moves_.push_back(plain_move(world_, std::move(further)));
    }
    order_equals(moves_, options_.seed, [](const auto&, const auto&) { return true; });  // their worth decides first
    return {};
  }

  // One fault-free run in which all that the moves may want to know is counted.
  Result<void> survey() {
    std::vector<Question> calls;
    for (const Candidate& c : d_.plan.candidates) {
      if (!hits_by_count(c.kind) || (c.kind == schedule::FaultKind::syscall && too_busy(c.fault))) continue;
      const auto ask = [&](const Fault& fault) {
        if (askable(fault.node)) calls.push_back({fault.node, fault.when, visit_condition(fault)});
      };
      Fault plain = c.fault;
      plain.when.clear();
      ask(plain);
      if (!c.fault.when.empty()) ask(c.fault);
      for (const Fault& shape : c.alternatives)
        if (!shape.when.empty() || c.kind == schedule::FaultKind::exception) ask(shape);
    }
    std::vector<Question> all = calls;
    if (world_.level(3))
      for (Question& question : place_questions_ahead(world_))
        if (askable(question.node)) all.push_back(std::move(question));
    for (std::vector<Question>& questions : std::vector<std::vector<Question>>{std::move(all), std::move(calls)}) {
      if (questions.empty() || lab_.left() <= 1) continue;
      ROSE_TRY(const bool made, survey(std::move(questions)));
      if (made) return {};
    }
    return {};
  }

  Result<bool> survey(std::vector<Question> questions) {
    std::map<std::string, Question> asked;  // by the id of its counter
    std::set<std::string> keys;
    Schedule schedule;
    schedule.name = inputs_.config->name;
    for (Question& question : questions) {
      if (schedule.faults.size() >= kMostQuestions) break;
      if (!keys.insert(key_of(question)).second) continue;
      const std::string id = fmt::format("count-{}", schedule.faults.size() + 1);
      schedule.faults.push_back(counter_for(question, id));
      asked.emplace(id, std::move(question));
    }
    const std::size_t index = lab_.enter(schedule, 0, fmt::format("a survey: how often {} calls and places come by without faults", asked.size())).index;
    ROSE_TRY(std::vector<Lab::Made> made, lab_.run({index}, fmt::format("a survey without faults: {} calls and places are counted", asked.size())));
    if (!made[0].armed) return false;
    RunResult& result = made[0].result;
    if (result.oracle == OracleAnswer::unknown) return true;  // nothing is known then; another would hardly fare better
    for (const auto& [id, question] : asked)
      if (const schedule::FaultOutcome* outcome = outcome_of(result, id))
        if (const std::optional<Answer> answer = read_answer(question, *outcome)) world_.survey.answers.emplace(key_of(question), *answer);
    world_.survey.made = true;
    if (!result.trace.events.empty()) world_.survey.trace = std::move(result.trace);
    return true;
  }

  bool askable(const std::string& name) const {
    const config::Node* node = inputs_.config->find(name);
    return node != nullptr && !node->attach;
  }

  bool too_busy(const Fault& fault) const {
    if (!inputs_.profile || inputs_.profile->seconds <= 0) return false;
    const auto node = inputs_.profile->syscalls.find(fault.node);
    if (node == inputs_.profile->syscalls.end()) return false;
    const auto call = node->second.find(fault.call.syscall);
    return call != node->second.end() && static_cast<double>(call->second) / inputs_.profile->seconds > kTooBusy;
  }

  // --- the loop

  struct Trial {
    Move* move = nullptr;   // nullptr: another run of what missed
    Try what;
    std::size_t tried = 0;  // index into d_.tried
    bool runs = true;       // false: it was made before
    int schedules = 0;      // tried until then
    bool armed = true;
    RunResult result;
  };

  [[nodiscard]] int left() const { return until_ > 0 ? std::min(lab_.left(), until_ - d_.runs) : lab_.left(); }

  // True when a schedule reached the target rate; it is leads_.back().
  Result<bool> search() {
    while (left() > 0) {
      std::vector<Trial> batch = pick();
      if (batch.empty()) return false;
      ROSE_CHECK(make(batch));
      for (Trial& trial : batch) learn(trial);
      for (Trial& trial : batch) {
        if (!trial.runs || trial.result.verdict != Verdict::reproduced) continue;
        ROSE_TRY(const bool reached, follow(trial));
        if (reached) return true;
      }
    }
    return false;
  }

  // The best tries of all moves, as many as may run side by side, and what need not run again among them.
  std::vector<Trial> pick() {
    std::vector<Trial> batch;
    const int most = std::min(lab_.jobs(), left());
    for (int runs = 0; runs < most;) {
      Move* best = nullptr;
      double most_worth = 0;
      for (const std::unique_ptr<Move>& move : moves_) {
        const std::optional<Try> t = move->peek();
        if (!t || !world_.level(t->level)) continue;
        const double worth = worth_of(world_, lab_, *t);
        if (best == nullptr || worth > most_worth) {
          best = move.get();
          most_worth = worth;
        }
      }
      Missed* missed = best_missed(batch);
      if (missed != nullptr && (best == nullptr || missed->yield / lab_.cost(d_.tried[missed->tried].schedule) > most_worth)) {
        batch.push_back(another_run(*missed));
        ++runs;
        continue;
      }
      if (best == nullptr) break;
      Trial trial;
      trial.move = best;
      trial.what = *best->peek();
      best->take();
      const Lab::Entry entry = lab_.enter(trial.what.schedule, trial.what.level, trial.what.why);
      trial.tried = entry.index;
      trial.runs = entry.fresh;
      if (entry.fresh && !trial.what.look) ++d_.schedules;
      trial.schedules = d_.schedules;
      runs += trial.runs ? 1 : 0;
      batch.push_back(std::move(trial));
      // What is known already may change what comes next.
      if (!batch.back().runs) {
        learn(batch.back());
        batch.pop_back();
      }
    }
    return batch;
  }

  Missed* best_missed(const std::vector<Trial>& batch) {
    Missed* best = nullptr;
    if (again_ >= kMostAgain) return nullptr;
    for (Missed& missed : missed_) {
      if (missed.runs >= kMostRunsOfOne || d_.tried[missed.tried].tally.reproduced > 0) continue;
      if (std::any_of(batch.begin(), batch.end(), [&](const Trial& trial) { return trial.tried == missed.tried; })) continue;
      if (best == nullptr || missed.yield > best->yield) best = &missed;
    }
    return best;
  }

  Trial another_run(Missed& missed) {
    ++again_;
    ++missed.runs;  // also of one that tells nothing, or that is of another moment: it counts as tried
    missed.yield *= 1 - kShows;
    Trial trial;
    trial.tried = missed.tried;
    trial.what.schedule = d_.tried[missed.tried].schedule;
    trial.what.level = missed.level;
    trial.what.again = true;
    trial.what.yield = missed.yield;
    trial.schedules = d_.schedules;
    return trial;
  }

  Result<void> make(std::vector<Trial>& batch) {
    std::vector<std::size_t> todo;
    std::set<std::size_t> once;  // many at once that leave nothing to judge do so again: fewer of them are the next try
    for (const Trial& trial : batch) {
      todo.push_back(trial.tried);
      if (trial.what.many) once.insert(trial.tried);
    }
    if (const std::size_t room = lab_.room(); room > 0) lab_.expect(after_misses(batch, room));
    const Try& first = batch[0].what;
    lab_.level = first.level;
    const std::string doing =
        fmt::format("{}: {}{}", first.again ? "trying again" : "trying", first.look ? first.why : short_words(first.schedule),
                    batch.size() > 1 ? fmt::format(" (and {} more beside it)", batch.size() - 1) : "");
    ROSE_TRY(std::vector<Lab::Made> made, first.look ? lab_.run(todo, doing) : lab_.run_judged(todo, doing, once));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].armed = made[i].armed;
      batch[i].result = std::move(made[i].result);
      Tried& entry = d_.tried[batch[i].tried];
      const std::string& reason = batch[i].result.reason;
      if (!reason.empty() && !batch[i].what.look && entry.note.find(reason) == std::string::npos) entry.note += fmt::format("; {}", reason);
    }
    return {};
  }

  std::vector<Schedule> after_misses(const std::vector<Trial>& batch, std::size_t room) const {
    std::vector<UnderWay> under_way;
    std::vector<Retry> retries;
    const auto running = [&](std::size_t tried) { return std::any_of(batch.begin(), batch.end(), [&](const Trial& one) { return one.tried == tried; }); };
    for (const Missed& missed : missed_)
      if (!running(missed.tried) && d_.tried[missed.tried].tally.reproduced == 0)
        retries.push_back({&d_.tried[missed.tried].schedule, missed.yield, missed.runs});
    for (const Trial& trial : batch) {
      if (trial.move != nullptr) under_way.push_back({trial.move, &trial.what});
      if (!trial.what.look && !trial.what.again) retries.push_back({&trial.what.schedule, trial.what.yield * kAgain, 1});
    }
    return forecast_misses(world_, lab_, moves_, under_way, retries, kMostAgain - again_, room);
  }

  void learn(Trial& trial) {
    Shown shown;
    shown.fresh = trial.runs;
    RunResult& known = shown_[trial.tried];
    if (trial.runs) {
      shown.result = &trial.result;
      if (feedback_ && world_.uses("feedback") && !trial.what.look && trial.result.oracle != OracleAnswer::unknown) {
        std::set<std::string> signs = signs_of(trial.result.trace);
        signs.insert(trial.result.shown.begin(), trial.result.shown.end());
        shown.observables = feedback_->share(signs);
        if (trial.result.oracle == OracleAnswer::miss) feedback_->missed(trial.what.schedule, signs);
        world_.belief = feedback_->belief();
        for (const auto& [id, factor] : lead_belief_) world_.belief[id] = factor * (world_.belief.contains(id) ? world_.belief[id] : 1);
      }
      remember_miss(trial, shown.observables);
      if (trial.what.many && trial.result.oracle == OracleAnswer::miss)
        for (const schedule::FaultOutcome& outcome : trial.result.faults)
          if (outcome.fired) world_.in_vain.insert(outcome.id);
    } else {
      shown.result = &known;
    }
    if (trial.move != nullptr) {
      trial.move->learn(trial.what, shown);
      for (std::unique_ptr<Move>& move : trial.move->offspring()) moves_.push_back(std::move(move));
    }
    if (!trial.runs) return;
    trace::Trace trace = std::exchange(trial.result.trace, {});
    known = trial.result;
    trial.result.trace = std::move(trace);
  }

  // Runs at one moment are runs of one schedule, whatever that waited for.
  void remember_miss(const Trial& trial, double observables) {
    // Not asked again yet, for another one showed the bug.
    const bool unclear = trial.armed && !trial.what.many && trial.result.oracle == OracleAnswer::unknown && d_.tried[trial.tried].tally.runs() == 1;
    if ((trial.result.verdict != Verdict::not_reproduced && !unclear) || trial.what.look || trial.what.again) return;
    // A message that the failed call itself brings back says nothing of the moment.
    if (inputs_.said.size() == inputs_.traces.size()) observables = 0;
    std::string moment = schedule::fingerprint(trial.what.schedule);
    if (world_.uses("moments"))
      if (std::optional<std::string> found = moment_of(trial.what.schedule, trial.result)) moment = *std::move(found);
    const auto [known, fresh] = missed_at_.try_emplace(moment, missed_.size());
    const double yield = trial.what.yield * kAgain * (1 + kAgainSigns * observables);
    if (fresh) {
      missed_.push_back({trial.tried, trial.what.level, yield, 1});
      return;
    }
    Missed& missed = missed_[known->second];
    ++missed.runs;
    missed.yield = std::max(missed.yield, yield) * (1 - kShows);
  }

  // --- a schedule that showed the bug

  // True: it reaches the target.
  Result<bool> follow(const Trial& trial) {
    Lead lead;
    lead.schedule = trial.what.schedule;
    lead.level = trial.what.level;
    lead.schedules = trial.schedules;
    lead.tried = trial.tried;
    remember_fired(lead, trial.result);
    if (trial.what.many && world_.uses("narrowing")) ROSE_CHECK(narrow(lead));
    std::string moment = schedule::fingerprint(lead.schedule);
    if (lead.tried == trial.tried && world_.uses("moments"))
      if (std::optional<std::string> found = moment_of(lead.schedule, trial.result)) moment = *std::move(found);
    if (!tested_.insert(moment).second) return false;
    const std::set<std::string> ids = fault_ids(lead.schedule);
    if (tests_ >= kMostTests || tests_alike_[ids] >= kMostTestsAlike) {
      d_.tried[lead.tried].note += "; not tested, after so many others";
      return false;
    }
    ++tests_alike_[ids];
    ROSE_CHECK(test(lead));
    leads_.push_back(lead);
    if (lead.accepted) return true;
    d_.tried[lead.tried].note += fmt::format("; below the target: {} of {} confirming runs", lead.tally.reproduced, lead.tally.conclusive());
    if (lead.tally.reproduced > 0) go_on_from(lead);
    return false;
  }

  static void remember_fired(Lead& lead, const RunResult& result) {
    for (const schedule::FaultOutcome& outcome : result.faults)
      if (outcome.fired) lead.fired.insert(outcome.id);
  }

  // Of many faults, or many calls, those that count: by halves, a run each.
  Result<void> narrow(Lead& lead) {
    Narrower narrower(lead.schedule, lead.fired);
    for (int runs = 0; runs < kMostNarrowing && lab_.left() > 0; ++runs) {
      const std::optional<Narrower::Part> part = narrower.next();
      if (!part) break;
      const Lab::Entry entry = lab_.enter(part->schedule, lead.level, fmt::format("narrowed down: {}", part->what));
      if (!entry.fresh) {
        narrower.learn(d_.tried[entry.index].tally.reproduced > 0, {});
        continue;
      }
      if (const std::size_t room = lab_.room(); room > 0) {
        std::vector<Schedule> next = forecast_narrowing(narrower, room);
        if (next.size() < room) next.insert(next.end(), std::min(room - next.size(), std::size_t{8}), part->schedule);  // and then it is tested
        lab_.expect(std::move(next));
      }
      ROSE_TRY(std::vector<Lab::Made> made, lab_.run({entry.index}, fmt::format("narrowing down: {}", short_words(part->schedule))));
      const bool hit = made[0].result.verdict == Verdict::reproduced;
      std::set<std::string> fired;
      for (const schedule::FaultOutcome& outcome : made[0].result.faults)
        if (outcome.fired) fired.insert(outcome.id);
      narrower.learn(hit, fired);
      if (!hit) continue;
      lead.schedule = part->schedule;
      lead.tried = entry.index;
      lead.fired.clear();
      remember_fired(lead, made[0].result);
    }
    return {};
  }

  // Fresh runs, until the sequential test knows; none of those in which it was found counts.
  Result<void> test(Lead& lead) {
    const RateTest rate_test(options_.target_rate, ++tests_);
    Series series;
    int inconclusive = 0;
    const auto answer = [&] { return rate_test.answer(lead.tally); };
    while (lab_.left() > 0 && answer() == RateTest::Answer::open && inconclusive < kMostInconclusive &&
           (until_ == 0 || lead.tally.not_reproduced <= kSurerMisses)) {
      int batch = std::min(lab_.jobs(), lab_.left());
      // Not more side by side than a schedule that never misses needs.
      if (lead.tally.not_reproduced == 0) batch = std::min(batch, std::max(1, rate_test.perfect() - lead.tally.reproduced));
      // A run that missed has to be made up for by a few that hit.
      const int more = rate_test.perfect() - lead.tally.reproduced + 3 * lead.tally.not_reproduced - batch;
      expect_more(lead, more, [&](std::size_t room, std::vector<Schedule>& next) { forecast_end(Simplifier(lead.schedule, lead.fired), lead.tally, room, next); });
      ROSE_CHECK(repeat(lead, batch, fmt::format("confirming, run {}", lead.tally.conclusive() + 1), series));
      lead.tally = series.tally();
      inconclusive = lead.tally.inconclusive;
    }
    d_.confirm_runs = lead.tally.runs();
    lead.accepted = answer() == RateTest::Answer::accepted && 2 * lead.tally.conclusive() >= lead.tally.runs();
    if (lead.accepted) ROSE_CHECK(compare_with_controls(lead));
    lab_.best_rate = std::max(lab_.best_rate, lead.tally.rate());
    return {};
  }

  // Is it the faults? More runs without them until chance explains the difference no more, or it does.
  Result<void> compare_with_controls(Lead& lead) {
    Schedule none;
    none.name = inputs_.config->name;
    const std::size_t index = lab_.enter(none, 0, "control run without faults").index;
    const auto chance = [&] {
      return schedule::chance_of_more(lead.tally.reproduced, lead.tally.conclusive(), d_.control_hits, d_.control_runs);
    };
    for (int runs = 0; chance() > kByChance && runs < kMostControls && lab_.left() > 0; ++runs) {
      ROSE_TRY(const std::vector<Lab::Made> made, lab_.run({index}, "one more run without faults, to compare with"));
      if (!made[0].armed) break;
    }
    if (chance() <= kByChance) return {};
    lead.accepted = false;
    d_.tried[lead.tried].note += fmt::format("; without faults the bug shows in {} of {} runs, which may be as often", d_.control_hits, d_.control_runs);
    return {};
  }

  // `more` further runs of it, and what comes then.
  template <class Then>
  void expect_more(const Lead& lead, int more, Then then) {
    const std::size_t room = lab_.room();
    if (room == 0) return;
    std::vector<Schedule> next(std::min(room, static_cast<std::size_t>(std::max(0, more))), lead.schedule);
    if (next.size() < room) then(room, next);
    lab_.expect(std::move(next));
  }

  // How it will be made simpler, where each idea takes so many runs that hit; then its rate is told.
  void forecast_end(const Simplifier& simplifier, const Tally& found, std::size_t room, std::vector<Schedule>& next) const {
    const int gate = static_cast<int>(std::ceil(kAsGood / -std::log(kWorseShare)));
    if (inputs_.simplify && found.not_reproduced <= found.reproduced)
      forecast_simplifying(simplifier, gate, options_.confirm_runs, room, next);
    else
      next.insert(next.end(), std::min(room - next.size(), static_cast<std::size_t>(options_.confirm_runs)), simplifier.current());
  }

  Result<void> repeat(Lead& lead, int runs, const std::string& doing, Series& series) {
    lab_.level = lead.level;
    ROSE_TRY(std::vector<Lab::Made> made, lab_.run(std::vector<std::size_t>(static_cast<std::size_t>(runs), lead.tried),
                                                    fmt::format("{}: {}", doing, short_words(lead.schedule))));
    for (const Lab::Made& one : made) {
      series.add(one.result, lead.schedule);
      if (one.result.verdict == Verdict::reproduced) remember_fired(lead, one.result);
    }
    return {};
  }

  // What shows the bug too rarely is the best start there is.
  void go_on_from(const Lead& lead) {
    for (const Fault& fault : lead.schedule.faults) {
      lead_belief_[fault.id] = kLeadBelief;
      world_.belief[fault.id] = kLeadBelief;
    }
    if (world_.level(2)) {
      for (std::unique_ptr<Move>& move : context_moves(world_, &lead.schedule)) moves_.push_back(std::move(move));
      for (const Fault& fault : lead.schedule.faults)
        if (hits_by_count(fault.kind) && fault.count == 1)
          if (std::unique_ptr<Move> move = nth_move(world_, lead.schedule, fault.id, kLead * kShareNth, "it showed the bug, but too rarely"))
            moves_.push_back(std::move(move));
    }
    if (world_.level(3))
      for (const Fault& fault : lead.schedule.faults)
        if (lead.fired.contains(fault.id))
          if (std::unique_ptr<Move> move = place_move(world_, lead.schedule, fault.id, kLead * kSharePlace)) moves_.push_back(std::move(move));
  }

  // What was accepted although it missed at times hangs by a moment that its times do not always hit, and hits more rarely
  // where the machine is busier or slower. Waiting for what happens there, or for nothing, is surer: that is looked for.
  Result<void> surer(Lead& found) {
    if (!world_.uses("surer") || std::exchange(looked_for_surer_, true)) return {};
    std::vector<Missed> missed = std::exchange(missed_, {});
    std::map<std::string, std::size_t> missed_at = std::exchange(missed_at_, {});
    moves_.clear();
    go_on_from(found);
    if (world_.level(1))
      if (std::vector<Try> tries = untimed(found); !tries.empty()) moves_.push_back(plain_move(world_, std::move(tries)));
    until_ = d_.runs + std::min(kMostSurer, lab_.left() - options_.confirm_runs);
    while (left() > 0) {
      ROSE_TRY(const bool reached, search());
      if (!reached) break;
      if (!better(leads_.back(), found)) continue;
      d_.tried[found.tried].note += fmt::format("; accepted with {} of {}, then a surer one was found", found.tally.reproduced,
                                                found.tally.conclusive());
      found = leads_.back();
      break;
    }
    until_ = 0;
    missed_ = std::move(missed);
    missed_at_ = std::move(missed_at);
    return {};
  }

  // Its calls, not from a time on, but the first ones.
  std::vector<Try> untimed(const Lead& lead) const {
    std::vector<Try> tries;
    for (std::size_t i = 0; i < lead.schedule.faults.size(); ++i) {
      const Fault& fault = lead.schedule.faults[i];
      if (!hits_by_count(fault.kind) || fault.when.empty() || fault.when[0].kind != ConditionKind::elapsed) continue;
      Try t;
      t.schedule = lead.schedule;
      t.schedule.faults[i].when.erase(t.schedule.faults[i].when.begin());
      t.yield = kLead * kShareCall;
      t.why = fmt::format("{} does not wait for a time: it showed the bug, but not always", fault.id);
      tries.push_back(std::move(t));
    }
    return tries;
  }

  static bool better(const Lead& a, const Lead& b) {
    const auto [a_low, a_high] = a.tally.interval();
    const auto [b_low, b_high] = b.tally.interval();
    return a_low != b_low ? a_low > b_low : a.tally.rate() > b.tally.rate();
  }

  // --- simpler, at the same rate; then the rate, from runs that chose nothing

  Result<void> finish(const Lead& found) {
    final_ = found;
    if (found.accepted) {
      conclude();  // what is told until then, should somebody not want to wait for less of it
      lab_.found = true;
    }
    const int before = d_.runs;
    if (inputs_.simplify && (found.accepted || found.schedule.faults.size() > 1)) ROSE_CHECK(simplify(found));
    d_.simplify_runs = d_.runs - before;
    ROSE_CHECK(tell_rate());
    if (!found.accepted) return {};
    // Simpler is no gain when it shows more rarely: then only faults were taken away, or nothing.
    const Lead before_details = fewest_faults_.value_or(found);
    for (const Lead* less : {&before_details, &found}) {
      const std::string known = schedule::fingerprint(final_->schedule);
      if (known == schedule::fingerprint(found.schedule) || RateTest(options_.target_rate).likely(d_.tally)) break;
      if (known == schedule::fingerprint(less->schedule)) continue;
      d_.tried[final_->tried].note += "; too rare when it was run for its rate";
      d_.simplify_runs = d_.runs - before;
      final_ = *less;
      changes_.clear();
      count_dropped(found);
      ROSE_CHECK(tell_rate());
    }
    if (looked_for_surer_ || d_.tally.rate() >= options_.target_rate) return {};
    Lead best = *final_;
    best.tally = d_.tally;
    ROSE_CHECK(surer(best));
    if (best.tried == final_->tried) return {};
    fewest_faults_.reset();
    changes_.clear();
    return finish(best);
  }

  void count_dropped(const Lead& found) { dropped_ = found.schedule.faults.size() - final_->schedule.faults.size(); }

  Result<void> simplify(const Lead& found) {
    Simplifier simplifier(found.schedule, found.fired, !found.accepted);
    const int before = d_.runs;
    const double seconds = lab_.seconds_a_run();
    const int most = seconds > kLongRun ? std::clamp(before, kFewSimplifying, kMostSimplifying) : kMostSimplifying;
    lab_.runs_until = before + most + options_.confirm_runs;
    while (d_.runs - before < most && lab_.left() > options_.confirm_runs) {
      const std::optional<Simplifier::Idea> idea = simplifier.next();
      if (!idea) break;
      const Lab::Entry entry = lab_.enter(idea->schedule, final_->level, fmt::format("simpler: {}", idea->what));
      if (!entry.fresh && d_.tried[entry.index].tally.reproduced == 0) {
        simplifier.learn(false);  // it missed before
        continue;
      }
      Lead simpler = *final_;
      simpler.schedule = idea->schedule;
      simpler.tried = entry.index;
      simpler.fired.clear();
      ROSE_TRY(const bool holds, as_good(simpler, found.tally, idea->drops_faults, before + most, simplifier));
      simplifier.learn(holds);
      if (holds) final_ = std::move(simpler);
      if (holds && idea->drops_faults) fewest_faults_ = final_;
    }
    changes_ = simplifier.changes();
    count_dropped(found);
    return {};
  }

  // Does it show the bug as often as the found one, or clearly more rarely? A sequential test, once more. The burden of
  // proof lies with faults: what has nothing to do with the failure must not stay.
  Result<bool> as_good(Lead& simpler, const Tally& found, bool drops_faults, int until, const Simplifier& simplifier) {
    const double rate = (found.reproduced + 1.0) / (found.conclusive() + 2.0);
    const double worse = rate * kWorseShare;
    const double hit = std::log(rate / worse);
    const double miss = std::log((1 - rate) / (1 - worse));
    Series series;
    Tally tally;
    double weight = 0;
    while (tally.runs() < kMostGate && d_.runs < until && lab_.left() > 0) {
      const int batch = std::min(lab_.jobs(), lab_.left());
      expect_more(simpler, static_cast<int>(std::ceil((kAsGood - weight) / hit)) - batch, [&](std::size_t room, std::vector<Schedule>& next) {
        for (const bool holds : {weight >= 0, weight < 0}) {
          Simplifier then = simplifier;
          then.learn(holds);
          const std::size_t half = holds == (weight >= 0) ? next.size() + (room - next.size() + 1) / 2 : room;
          forecast_end(then, found, half, next);
        }
      });
      ROSE_CHECK(repeat(simpler, batch, "does it still show", series));
      tally = series.tally();
      weight = tally.reproduced * hit + (tally.not_reproduced + tally.inconclusive) * miss;
      if (weight >= kAsGood) return true;
      if (weight <= (drops_faults ? kNeedsFault : kWorse)) return false;
    }
    // Undecided when the runs are used up, nothing is gained on trust.
    return drops_faults && tally.reproduced > 0 && (tally.runs() >= kMostGate || weight > 0);
  }

  Result<void> tell_rate() {
    Series series;
    d_.rate_runs = 0;
    d_.tested = final_->tally;
    d_.tally = final_->tally;
    if (final_->tally.conclusive() == 0) return {};  // nothing could be judged: no more will be
    while (d_.rate_runs < options_.confirm_runs && lab_.left() > 0 && series.tally().inconclusive < kMostInconclusive) {
      const int batch = std::min({lab_.jobs(), lab_.left(), options_.confirm_runs - d_.rate_runs});
      expect_more(*final_, options_.confirm_runs - d_.rate_runs - batch, [](std::size_t, std::vector<Schedule>&) {});
      ROSE_CHECK(repeat(*final_, batch, fmt::format("how often does it show, {}/{}", d_.rate_runs + 1, options_.confirm_runs), series));
      d_.rate_runs += batch;
    }
    rate_told_ = series.tally().conclusive() > 0;
    if (rate_told_) d_.tally = series.tally();
    return {};
  }

  // --- the result

  void conclude() {
    if (final_) {
      const Lead& lead = *final_;
      d_.target_reached = lead.accepted;
      d_.verdict = lead.accepted ? Verdict::reproduced : Verdict::not_reproduced;
      d_.level = lead.level;
      if (lead.accepted) d_.schedules = lead.schedules;
      if (!rate_told_) d_.tested = d_.tally = lead.tally;
      d_.confirm_runs = d_.tested.runs();
      d_.found = lead.schedule;
      d_.remarks = remarks(lead);
      const std::string rate = rate_told_ ? fmt::format("{} of {} runs made to tell its rate ({})", d_.tally.reproduced,
                                                              d_.tally.conclusive(), percent(d_.tally.rate()))
                                                : fmt::format("{} of {} confirming runs ({})", d_.tally.reproduced, d_.tally.conclusive(),
                                                              percent(d_.tally.rate()));
      if (d_.target_reached)
        d_.reason = fmt::format("the schedule reproduces the bug in {}", rate);
      else
        d_.reason = fmt::format("no schedule reached the target rate of {}; the best reproduced the bug in {}{}",
                                percent(options_.target_rate), rate, ended_early());
    } else {
      conclude_without();
    }
    if (d_.control_hits > 0 && !noted_)
      d_.plan.notes.push_back(fmt::format("the bug showed in {} of {} runs in which no fault had fired: it may come without faults, rarely",
                                          d_.control_hits, d_.control_runs));
    noted_ = noted_ || d_.control_hits > 0;
  }

  void conclude_without() {
    int conclusive_runs = 0;
    for (const Tried& tried : d_.tried)
      if (tried.level > 0) conclusive_runs += tried.tally.conclusive();
    if (d_.schedules == 0) {
      d_.verdict = Verdict::inconclusive;
      d_.reason = lab_.left() <= 0
                      ? std::string("max_runs left no run for a schedule after the runs without faults")
                      : std::string("no schedule was tried: the levels asked for had nothing to propose; level 3 goes on from what "
                                    "level 2 reached");
    } else if (conclusive_runs == 0) {
      d_.verdict = Verdict::inconclusive;
      d_.reason = fmt::format("no run of the {} schedules tried could be judged; the last one: {}", d_.schedules, d_.tried.back().note);
    } else {
      d_.verdict = Verdict::not_reproduced;
      d_.reason = fmt::format("none of the {} schedules tried reproduced the bug{}", d_.schedules, ended_early());
    }
  }

  std::string ended_early() const {
    if (lab_.left() <= 0) return fmt::format(" (max_runs = {} is used up)", options_.max_runs);
    return {};
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

  Remarks remarks(const Lead& lead) const {
    Remarks told;
    told.places = places_in_words(lead.schedule, inputs_.code);
    const auto [low, high] = d_.tally.interval();
    told.rate = fmt::format("The bug then shows in {} of {} runs ({}; with 95 % confidence between {} and {}).", d_.tally.reproduced,
                            d_.tally.conclusive(), percent(d_.tally.rate()), percent(low), percent(high));
    if (d_.control_runs > 0) told.rate += fmt::format(" Without faults it showed in {} of {}.", d_.control_hits, d_.control_runs);
    if (const std::string why = consequence(lead.schedule); !why.empty())
      told.doubts.push_back(fmt::format("But in the dump this looks like a consequence, not a cause ({}). What came before it was tried and did "
                                        "not show the bug; if the oracle asks for this consequence itself, it proves nothing.", why));
    if (dropped_ > 0)
      told.simpler.push_back(fmt::format("It shows without {} other fault{} of the dump, so {} left out.", dropped_,
                                         dropped_ == 1 ? "" : "s", dropped_ == 1 ? "that one was" : "those were"));
    if (!changes_.empty()) told.simpler.push_back(fmt::format("Made simpler at the same rate: {}.", fmt::join(changes_, "; ")));
    return told;
  }

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  Diagnosis d_;
  Lab lab_;
  World world_;
  std::optional<Feedback> feedback_;
  Moves moves_;
  std::map<std::size_t, RunResult> shown_;       // what the last run of each showed, without its trace
  std::vector<Missed> missed_;
  std::map<std::string, std::size_t> missed_at_; // by moment
  int again_ = 0;
  std::vector<Lead> leads_;
  std::set<std::string> tested_;                 // moments
  std::map<std::set<std::string>, int> tests_alike_;
  std::map<std::string, double> lead_belief_;
  int tests_ = 0;
  bool looked_for_surer_ = false;
  int until_ = 0;                                // runs, while something surer than what was accepted is looked for; 0: it is not
  std::optional<Lead> final_;
  std::optional<Lead> fewest_faults_;            // as it was when only faults had been taken away
  std::size_t dropped_ = 0;                      // faults that simplification took away
  std::vector<std::string> changes_;             // and what else it made simpler
  bool rate_told_ = false;                       // by runs of its own
  bool noted_ = false;
};

}  // namespace

double worth_of(const World& world, const Lab& lab, const Try& t) {
  // A hit of many faults or calls is only the beginning: its narrowing takes runs, too.
  const double later = t.many && world.uses("narrowing") ? t.yield * narrowing_runs(t.schedule) : 0;
  double worth = t.yield / (lab.cost(t.schedule) * (1 + later));
  if (!world.uses("turns")) worth += 10.0 * (3 - t.level);  // level after level, as the paper has it
  return worth;
}

Result<Diagnosis> diagnose(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress) {
  ROSE_ASSERT(inputs.config != nullptr);
  return Search(inputs, runner, progress).run();
}

}  // namespace rose::diagnose
