#include "diagnose/refine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "diagnose/thresholds.h"

namespace rose::diagnose {

using schedule::RateTest;
using schedule::Series;
using schedule::Tally;

Result<void> Refinement::refine(Found& end, const Lead& found) {
  const int before = d_.runs;
  drop_needless(end, found);
  if (inputs_.simplify && (found.accepted || found.schedule.faults.size() > 1)) ROSE_CHECK(simplify(end, found));
  d_.simplify_runs = d_.runs - before;
  ROSE_CHECK(tell_rate(end));
  if (!found.accepted) return {};
  // Simpler is no gain when it shows more rarely: then only faults were taken away, or nothing.
  const Lead before_details = end.fewest_faults.value_or(found);
  for (const Lead* less : {&before_details, &found}) {
    const std::string known = schedule::fingerprint(end.lead.schedule);
    if (known == schedule::fingerprint(found.schedule) || RateTest(options_.target_rate).likely(d_.tally)) break;
    if (known == schedule::fingerprint(less->schedule)) continue;
    d_.tried[end.lead.tried].note += "; too rare in the runs that measured its rate";
    d_.simplify_runs = d_.runs - before;
    end.lead = *less;
    end.changes.clear();
    end.count_dropped(found);
    ROSE_CHECK(tell_rate(end));
  }
  return {};
}

// Costs no run; the rate, which is told from further runs, says whether it holds.
void Refinement::drop_needless(Found& end, const Lead& found) {
  Schedule less = found.schedule;
  for (const std::string& id : found.needless()) less = without(less, id);
  if (less.faults.empty() || less.faults.size() == found.schedule.faults.size()) return;
  end.lead.schedule = std::move(less);
  end.lead.tried = lab_.enter(end.lead.schedule, found.level, "without what the bug showed without").index;
  end.fewest_faults = end.lead;
  end.count_dropped(found);
}

Result<void> Refinement::simplify(Found& end, const Lead& found) {
  Simplifier simplifier(end.lead.schedule, end.lead.fired, !found.accepted);
  const int before = d_.runs;
  const double seconds = lab_.seconds_a_run();
  const int most = seconds > kLongRun ? std::clamp(before, kFewSimplifying, kMostSimplifying) : kMostSimplifying;
  lab_.runs_until = before + most + options_.confirm_runs;
  while (d_.runs - before < most && lab_.left() > options_.confirm_runs) {
    const std::optional<Simplifier::Idea> idea = simplifier.next();
    if (!idea) break;
    const Lab::Entry entry = lab_.enter(idea->schedule, end.lead.level, fmt::format("simpler: {}", idea->what));
    if (!entry.fresh && d_.tried[entry.index].tally.reproduced == 0) {
      simplifier.learn(false);  // it missed before
      continue;
    }
    Lead simpler = end.lead;
    simpler.schedule = idea->schedule;
    simpler.tried = entry.index;
    simpler.forget_runs();
    ROSE_TRY(const bool holds, as_good(simpler, found.tally, idea->drops_faults, before + most, simplifier));
    simplifier.learn(holds);
    if (!holds) continue;
    end.lead = std::move(simpler);
    if (idea->drops_faults) end.fewest_faults = end.lead;
    end.changes = simplifier.changes();
    end.count_dropped(found);
  }
  // With its margins. They cost no run; the rate, which is told from further runs, says whether it holds.
  if (schedule::fingerprint(simplifier.current()) != schedule::fingerprint(end.lead.schedule)) {
    end.lead.schedule = simplifier.current();
    end.lead.tried = lab_.enter(end.lead.schedule, end.lead.level, "as long as leaves a margin").index;
    end.changes = simplifier.changes();
  }
  return {};
}

// Does it show the bug as often as the found one, or clearly more rarely? A sequential test, once more. The burden of
// proof lies with faults: what has nothing to do with the failure must not stay.
Result<bool> Refinement::as_good(Lead& simpler, const Tally& found, bool drops_faults, int until,
                                 const Simplifier& simplifier) {
  const double rate = (found.reproduced + 1.0) / (found.conclusive() + 2.0);
  const double worse = rate * kWorseShare;
  const double hit = std::log(rate / worse);
  const double miss = std::log((1 - rate) / (1 - worse));
  Series series;
  Tally tally;
  double weight = 0;
  while (tally.runs() < kMostGate && d_.runs < until && lab_.left() > 0) {
    // Not more side by side than it needs if it never misses: each slows the others down.
    const int needed = static_cast<int>(std::ceil((kAsGood - weight) / hit));
    const int batch = std::min({lab_.jobs(), lab_.left(), needed});
    runs_.expect_more(simpler, needed - batch, [&](std::size_t room, std::vector<Schedule>& next) {
      for (const bool holds : {weight >= 0, weight < 0}) {
        Simplifier then = simplifier;
        then.learn(holds);
        const std::size_t half = holds == (weight >= 0) ? next.size() + (room - next.size() + 1) / 2 : room;
        runs_.forecast_end(then, found, half, next);
      }
    });
    ROSE_CHECK(runs_.repeat(simpler, batch, "does it still reproduce", series));
    tally = series.tally();
    weight = tally.reproduced * hit + (tally.not_reproduced + tally.inconclusive) * miss;
    if (weight >= kAsGood) return true;
    if (weight <= (drops_faults ? kNeedsFault : kWorse)) return false;
  }
  // Undecided when the runs are used up, nothing is gained on trust.
  return drops_faults && tally.reproduced > 0 && (tally.runs() >= kMostGate || weight > 0);
}

Result<void> Refinement::tell_rate(Found& end) {
  Series series;
  d_.rate_runs = 0;
  d_.tested = end.lead.tally;
  d_.tally = end.lead.tally;
  if (end.lead.tally.conclusive() == 0) return {};  // nothing could be judged: no more will be
  while (d_.rate_runs < options_.confirm_runs && lab_.left() > 0 && series.tally().inconclusive < kMostInconclusive) {
    const int batch = std::min({lab_.jobs(), lab_.left(), options_.confirm_runs - d_.rate_runs});
    runs_.expect_more(end.lead, options_.confirm_runs - d_.rate_runs - batch,
                      [](std::size_t, std::vector<Schedule>&) {});
    ROSE_CHECK(runs_.repeat(end.lead, batch,
                            fmt::format("measuring its replay rate, {}/{}", d_.rate_runs + 1, options_.confirm_runs),
                            series));
    d_.rate_runs += batch;
  }
  end.rate_told = series.tally().conclusive() > 0;
  if (end.rate_told) d_.tally = series.tally();
  return {};
}

}  // namespace rose::diagnose
