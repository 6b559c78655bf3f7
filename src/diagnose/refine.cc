#include "diagnose/refine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "diagnose/hypothesis.h"
#include "diagnose/thresholds.h"

namespace rose::diagnose {

using schedule::RateTest;
using schedule::Series;
using schedule::Tally;

Result<void> Refinement::refine(Found& end, const Lead& found) {
  const int before = d_.runs;
  drop_unneeded(end, found);
  const bool promising = found.promising || found.accepted;
  if (inputs_.simplify && (promising || found.schedule.faults.size() > 1)) ROSE_CHECK(simplify(end, found));
  if (inputs_.simplify && promising) ROSE_CHECK(try_rivals(end.lead, found));
  d_.simplify_runs = d_.runs - before;
  return promising ? decide(end, found) : measure(end, found);
}

// Removes faults that runs have shown to be unnecessary. That takes no run, because the final test checks the result.
void Refinement::drop_unneeded(Found& end, const Lead& found) {
  Schedule less = found.schedule;
  for (const std::string& id : found.unneeded()) less = without(less, id);
  if (less.faults.empty() || less.faults.size() == found.schedule.faults.size()) return;
  const std::size_t tried = lab_.enter(less, found.level, "without the faults that runs did not need").index;
  const std::set<std::string> fired = found.fired;
  end.lead = found.as(std::move(less), tried);
  end.lead.fired = fired;
  end.fewest_faults = end.lead;
  end.count_dropped(found);
}

Result<void> Refinement::simplify(Found& end, const Lead& found) {
  // If the schedule sometimes misses, only remove faults: it would take too many runs to show that another
  // simplification does not make it miss more often.
  const bool faults_only = !(found.promising || found.accepted) || found.tally.rate() < kReliableRate;
  Simplifier simplifier(end.lead.schedule, end.lead.fired, faults_only, certain_faults(d_.plan, end.lead.schedule));
  const int before = d_.runs;
  // Reserve runs for the final test, or for measuring the rate of a schedule below the target.
  const int left =
      found.promising || found.accepted ? runs_.left_for(found) - kLeastDeciding : lab_.left() - options_.confirm_runs;
  const int most = std::clamp(left, 0, kMostSimplifying);
  lab_.runs_until = before + left;
  while (d_.runs - before < most) {
    const std::optional<Simplifier::Idea> idea = simplifier.next();
    if (!idea) break;
    if (ruled_out(inputs_, d_.plan, idea->schedule)) {
      simplifier.learn(false);
      continue;
    }
    const Lab::Entry entry = lab_.enter(idea->schedule, end.lead.level, fmt::format("simpler: {}", idea->what));
    if (!entry.fresh && d_.tried[entry.index].tally.reproduced == 0) {
      simplifier.learn(false);  // this form was tried before and missed
      continue;
    }
    Lead simpler = end.lead.as(idea->schedule, entry.index);
    ROSE_TRY(const bool holds, as_good(simpler, found, *idea, before + most, simplifier));
    simplifier.learn(holds);
    if (!holds) continue;
    end.lead = std::move(simpler);
    if (idea->drops_faults) end.fewest_faults = end.lead;
    end.changes = simplifier.changes();
    end.count_dropped(found);
  }
  // Add the margins to durations. That takes no run, because the final test checks the result.
  if (schedule::fingerprint(simplifier.current()) != schedule::fingerprint(end.lead.schedule)) {
    const std::size_t tried = lab_.enter(simplifier.current(), end.lead.level, "with a margin").index;
    end.lead = end.lead.as(simplifier.current(), tried);
    end.changes = simplifier.changes();
  }
  return {};
}

// Decides by a sequential probability ratio test whether the simpler schedule reproduces the bug as often as the found
// one (rate `rate`, estimated from its runs), or only at kWorseShare of that rate (`worse`). The test may be short: if
// a worse schedule passes it, the final test, which makes fresh runs, refutes this schedule, and an earlier form is
// tested instead. A fault or a fixed time is kept only with stronger evidence (kKeeps): a fault that is unrelated to
// the failure must not stay, and a schedule with a fixed time depends on the speed of the machine that replays it.
//
// A simpler schedule that takes far longer to reproduce the bug is not as good, so its runs may be ended early
// (`longest_ns`). Often the workload of such a run waits for something that a fault prevents, and gives up only after a
// minute.
Result<bool> Refinement::as_good(Lead& simpler, const Lead& found, const Simplifier::Idea& idea, int until,
                                 const Simplifier& simplifier) {
  const std::int64_t hit_ns = d_.tried[found.tried].longest_hit_ns;
  const std::int64_t longest_ns = hit_ns == 0 ? 0 : kFarLonger * std::max(hit_ns, d_.workload_ns) + kFarLongerNs;
  const double rate = (found.tally.reproduced + 1.0) / (found.tally.conclusive() + 2.0);
  const double worse = rate * kWorseShare;
  const double hit = std::log(rate / worse);
  const double miss = std::log((1 - rate) / (1 - worse));
  const double refuted = idea.drops_faults || idea.drops_time ? kKeeps : kWorse;
  Series series;
  Tally tally;
  double weight = 0;
  while (tally.runs() < kMostGate && d_.runs < until && lab_.left() > 0) {
    // Start no more parallel runs than are needed if none misses, because superfluous runs slow the others down.
    const int needed = static_cast<int>(std::ceil((kAsGood - weight) / hit));
    const int batch = std::min({lab_.jobs(), lab_.left(), needed, until - d_.runs});
    // The runs that follow the likelier of the two outcomes get the first half of the room.
    const bool likely = weight == 0 ? idea.likely : weight > 0;
    const int misses = static_cast<int>(std::ceil((refuted - weight) / miss));  // misses that refute the schedule
    runs_.expect_more(simpler, likely ? needed - batch : misses - batch,
                      [&](std::size_t room, std::vector<Schedule>& next) {
                        for (const bool holds : {likely, !likely}) {
                          Simplifier then = simplifier;
                          then.learn(holds);
                          const std::size_t half = next.size() + (room - next.size() + 1) / 2;
                          runs_.forecast_end(then, found.tally, holds == likely ? half : room, next);
                        }
                      });
    ROSE_CHECK(runs_.repeat(simpler, batch, "does it still reproduce", series, longest_ns));
    tally = series.tally();
    weight = tally.reproduced * hit + (tally.not_reproduced + tally.inconclusive) * miss;
    if (weight >= kAsGood) return true;
    if (weight <= refuted) return false;
  }
  // The runs did not decide. Accept the removal of a fault if one of kMostGate runs reproduced the bug, and the removal
  // of a fault or a fixed time if the runs so far speak for it; reject any other change.
  if (idea.drops_faults && tally.reproduced > 0 && tally.runs() >= kMostGate) return true;
  return (idea.drops_faults || idea.drops_time) && weight > 0;
}

Result<void> Refinement::try_each(const std::vector<OtherHypothesis>& others, const Lead& end, int until) {
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Lab::Entry entry = lab_.enter(others[i].schedule, others[i].level, others[i].why);
    const auto& tally = [&]() -> const Tally& { return d_.tried[entry.index].tally; };
    const std::string doing = fmt::format("another hypothesis: {}", short_words(others[i].schedule));
    // Stop when misses outnumber reproductions: a rival has to reproduce the bug as reliably as the found schedule.
    while (d_.runs < until && lab_.left() > 0 && tally().runs() < kMostOfRival &&
           tally().reproduced >= tally().not_reproduced + tally().inconclusive) {
      // The forecast assumes that this hypothesis misses. Then the next hypotheses are run, and after them the final
      // test.
      const std::size_t room = lab_.room();
      std::vector<Schedule> next;
      for (std::size_t later = i + 1; later < others.size() && next.size() < room; ++later)
        next.push_back(others[later].schedule);
      next.resize(room, end.schedule);
      lab_.expect(std::move(next));
      ROSE_TRY(const std::vector<Lab::Made> made, lab_.run({entry.index}, doing));
      if (!made[0].armed) break;
    }
  }
  return {};
}

// Tries other possible causes: the uncertain faults of the found schedule without its certain ones, and candidates that
// are about as likely as the found ones and were not tried. If they also reproduce the bug, runs cannot decide which
// hypothesis is true, and the report lists them as rivals.
Result<void> Refinement::try_rivals(const Lead& end, const Lead& found) {
  if (!world_.uses("rivals")) return {};
  const int until = d_.runs + std::max(0, std::min(kMostRivalRuns, runs_.left_for(found) - kLeastDeciding));
  std::vector<OtherHypothesis> others;
  const std::set<std::string> certain = certain_faults(d_.plan, found.schedule);
  if (!certain.empty() && certain.size() < found.schedule.faults.size()) {
    Schedule rest = found.schedule;
    for (const std::string& id : certain) rest = without(rest, id);
    if (!rest.faults.empty() && schedule::fingerprint(rest) != schedule::fingerprint(end.schedule))
      others.push_back(
          {std::move(rest), end.level, "without the certain faults: do the other faults reproduce the bug as well"});
  }
  std::size_t tried = 0;
  for (const Schedule* schedule : untried(d_, end.schedule, kRivalShare, false)) {
    if (++tried > kMostRivals) break;
    others.push_back({*schedule, 1, "this hypothesis is about as likely as the found schedule"});
  }
  std::erase_if(others, [&](const OtherHypothesis& other) { return ruled_out(inputs_, d_.plan, other.schedule); });
  return try_each(others, end, until);
}

Result<void> Refinement::prefer_certain(Lead& found) {
  if (!world_.uses("rivals") || found.schedule.faults.empty() || !certain_faults(d_.plan, found.schedule).empty())
    return {};
  std::size_t tried = 0;
  for (const Schedule* schedule : untried(d_, found.schedule, 0, true)) {
    if (++tried > kMostRivals || runs_.left_for(found) <= kLeastDeciding) break;
    const Schedule certain = *schedule;
    const Lab::Entry entry = lab_.enter(
        certain, 1, "this fault is certain, and the found schedule is only inferred: does the fault reproduce as well");
    ROSE_TRY(const std::vector<Lab::Made> made,
             lab_.run({entry.index}, fmt::format("the certain fault first: {}", short_words(certain))));
    if (!made[0].armed || made[0].result.verdict != schedule::Verdict::reproduced) continue;
    Lead lead = found.as(certain, entry.index);
    lead.remember(made[0].result);
    ROSE_CHECK(runs_.screen(lead, false));
    if (!lead.promising) continue;
    d_.tried[found.tried].note += "; a certain fault reproduces the bug as well";
    found = std::move(lead);
    return {};
  }
  return {};
}

// Makes the final test. Tests the simplest form first. If this form is refuted and enough runs are left, tests the form
// from which only faults were removed. Last, tests the schedule as it was found. Each form is tested with fresh runs,
// because it was selected for the outcomes of its earlier runs. Each counts as a separate test, because each test may
// err.
Result<void> Refinement::decide(Found& end, const Lead& found) {
  std::vector<Found> ways;
  const auto add = [&](Found way) {
    const std::string key = schedule::fingerprint(way.lead.schedule);
    if (std::any_of(ways.begin(), ways.end(),
                    [&](const Found& other) { return schedule::fingerprint(other.lead.schedule) == key; }))
      return;
    way.count_dropped(found);
    way.lead = way.lead.as(way.lead.schedule, way.lead.tried);
    ways.push_back(std::move(way));
  };
  add(end);
  if (end.fewest_faults) add({.lead = *end.fewest_faults});
  add({.lead = found});
  const Found* best = nullptr;
  for (Found& way : ways) {
    // The schedule as it was found has passed its screening. Even if the refuted forms have used up the limit, it
    // therefore gets as many runs as the test needs to accept a schedule that never misses.
    const bool last = &way == &ways.back();
    const int strictest = RateTest(options_.target_rate, 3).perfect();
    const int left = runs_.left_for(found);
    if (&way != &ways.front() && !last && left < RateTest(options_.target_rate, 2).perfect()) continue;
    lab_.runs_until = d_.runs + std::max(0, left);
    ROSE_CHECK(runs_.test(way.lead, std::max(left, last ? strictest : kLeastDeciding), false));
    way.decided = way.rate_measured = true;
    way.confirmed = found.tally;
    if (best == nullptr || way.lead.accepted || better(way.lead, best->lead)) best = &way;
    if (way.lead.accepted) break;
    d_.simplify_runs += way.lead.tally.runs();
    d_.tried[way.lead.tried].note += fmt::format("; below the target: in {} of {} runs made to measure its rate",
                                                 way.lead.tally.reproduced, way.lead.tally.conclusive());
  }
  end = *best;
  d_.tested = end.confirmed;
  d_.tally = end.lead.tally;
  d_.interval = end.lead.interval;
  d_.rate_runs = d_.tally.runs();
  if (!end.lead.accepted) d_.simplify_runs -= d_.rate_runs;
  if (end.lead.accepted && end.lead.tally.not_reproduced > 0) return measure_accepted(end);
  return {};
}

// A sequential test that accepts in spite of misses ends at the most favourable point, so the rate of its runs is
// biased upwards. Adds confirm_runs further runs, a number that does not depend on outcomes; the schedule reaches the
// target only if the rate of all runs together does.
Result<void> Refinement::measure_accepted(Found& end) {
  Lead& lead = end.lead;
  const int until = lead.tally.conclusive() + options_.confirm_runs;
  while (lead.tally.conclusive() < until && lab_.left() > 0 && lead.tally.inconclusive < kMostInconclusive) {
    const int batch = std::min({lab_.repeats(lead.schedule), lab_.left(), until - lead.tally.conclusive()});
    runs_.expect_more(lead, until - lead.tally.conclusive() - batch, [](std::size_t, std::vector<Schedule>&) {});
    ROSE_CHECK(runs_.repeat(lead, batch,
                            fmt::format("measuring its replay rate, run {} of {}", lead.tally.conclusive() + 1, until),
                            lead.series));
    lead.tally = lead.series.tally();
  }
  d_.tally = lead.tally;
  d_.interval = lead.interval = lead.tally.interval();
  d_.rate_runs = lead.tally.runs();
  if (lead.tally.rate() >= options_.target_rate) return {};
  lead.accepted = false;
  d_.tried[lead.tried].note += fmt::format("; below the target: in {} of {} runs made to measure its rate",
                                           lead.tally.reproduced, lead.tally.conclusive());
  return {};
}

// Measures the rate of a schedule below the target by fresh runs: its earlier runs are biased upwards, because it was
// selected for their outcomes.
Result<void> Refinement::measure(Found& end, const Lead& found) {
  Series series;
  end.decided = true;
  end.confirmed = found.tally;
  d_.rate_runs = 0;
  d_.tested = found.tally;
  d_.tally = found.tally;
  d_.interval = d_.tally.interval();
  if (found.tally.conclusive() == 0) return {};  // no run was conclusive, and further runs would hardly be conclusive
  while (d_.rate_runs < options_.confirm_runs && lab_.left() > 0 && series.tally().inconclusive < kMostInconclusive) {
    const int batch = std::min({lab_.repeats(end.lead.schedule), lab_.left(), options_.confirm_runs - d_.rate_runs});
    runs_.expect_more(end.lead, options_.confirm_runs - d_.rate_runs - batch,
                      [](std::size_t, std::vector<Schedule>&) {});
    ROSE_CHECK(runs_.repeat(end.lead, batch,
                            fmt::format("measuring its replay rate, {}/{}", d_.rate_runs + 1, options_.confirm_runs),
                            series));
    d_.rate_runs += batch;
  }
  end.rate_measured = series.tally().conclusive() > 0;
  if (!end.rate_measured) return {};
  d_.tally = series.tally();
  d_.interval = d_.tally.interval();
  return {};
}

}  // namespace rose::diagnose
