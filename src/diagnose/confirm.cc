#include "diagnose/confirm.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "diagnose/conclude.h"
#include "diagnose/forecast.h"
#include "diagnose/hypothesis.h"
#include "diagnose/narrow.h"
#include "diagnose/thresholds.h"

namespace rose::diagnose {

using schedule::RateTest;
using schedule::Series;
using schedule::Tally;
using schedule::Verdict;

namespace {
// True if at least half of the lead's runs were conclusive.
bool judged(const Lead& lead) { return 2 * lead.tally.conclusive() >= lead.tally.runs(); }
}  // namespace

Result<void> Confirmation::narrow(Lead& lead, bool doubts) {
  if (!doubts || !resembles_incident(inputs_, d_, d_.tried[lead.tried])) return narrow_down(lead, nullptr);
  const std::size_t whole = lead.tried;
  std::optional<Lead> other;
  ROSE_CHECK(narrow_down(lead, &other));
  if (lead.tried != whole || !other) return {};
  lead = *std::move(other);
  return narrow_down(lead, nullptr);
}

Result<void> Confirmation::narrow_down(Lead& lead, std::optional<Lead>* other) {
  std::map<std::string, double> weights;
  for (const Candidate& c : d_.plan.candidates) weights.emplace(c.fault.id, c.weight);
  Narrower narrower(lead.schedule, lead.fired, weights);
  // The hits since the last miss. They count as runs that screen the lead, although the earlier ones were made with
  // more faults: screening only decides whether minimisation and the test are worth their runs.
  Series in_a_row;
  for (int runs = 0; runs < kMostNarrowing && lab_.left() > 0; ++runs) {
    const std::optional<Narrower::Part> part = narrower.next();
    if (!part) break;
    if (ruled_out(inputs_, d_.plan, part->schedule)) {
      narrower.learn(false, {});
      continue;
    }
    const Lab::Entry entry = lab_.enter(part->schedule, lead.level, fmt::format("narrowed down: {}", part->what));
    Lead smaller = lead.as(part->schedule, entry.index);
    if (!entry.fresh) {
      const Tried& tried = d_.tried[entry.index];
      const bool reproduced =
          tried.tally.reproduced > 0 && (other == nullptr || resembles_incident(inputs_, d_, tried));
      narrower.learn(reproduced, {});
      if (!reproduced) continue;
      smaller.count(in_a_row);
      lead = std::move(smaller);
      continue;
    }
    if (const std::size_t room = lab_.room(); room > 0) {
      std::vector<Schedule> next = forecast_narrowing(narrower, room);
      if (next.size() < room)
        // The forecast ends with runs of this part, which is tested next if it cannot be narrowed down further.
        next.insert(next.end(), std::min(room - next.size(), std::size_t{8}), part->schedule);
      lab_.expect(std::move(next));
    }
    ROSE_TRY(std::vector<Lab::Made> made,
             lab_.run({entry.index}, fmt::format("narrowing down: {}", short_words(part->schedule))));
    const bool hit = made[0].result.verdict == Verdict::reproduced;
    std::set<std::string> fired;
    for (const schedule::FaultOutcome& outcome : made[0].result.faults)
      if (outcome.effective()) fired.insert(outcome.id);
    const bool other_failure = hit && other != nullptr && !resembles_incident(inputs_, d_, d_.tried[entry.index]);
    narrower.learn(hit && !other_failure, fired);
    if (hit && !other_failure) in_a_row.add(made[0].result, smaller.schedule);
    else in_a_row = {};
    if (!hit || (other_failure && *other)) continue;
    smaller.remember(made[0].result);
    smaller.count(in_a_row);
    if (other_failure) d_.tried[entry.index].note += "; it may be another failure: other parts come first";
    (other_failure ? other->emplace() : lead) = std::move(smaller);
  }
  return {};
}

Result<void> Confirmation::screen(Lead& lead, bool may_wait) {
  if (lead.number == 0) lead.number = ++tests_;
  const RateTest screening = RateTest::screening(options_.target_rate);
  ROSE_CHECK(run_until_known(lead, screening, false, may_wait));
  lead.promising = screening.answer(lead.tally) == RateTest::Answer::accepted && judged(lead);
  return {};
}

Result<void> Confirmation::test(Lead& lead, int most, bool strict) {
  const RateTest test(options_.target_rate, ++tickets_, most);
  ROSE_CHECK(run_until_known(lead, test, strict, false));
  lead.interval = test.interval(lead.tally);
  lead.accepted = test.answer(lead.tally) == RateTest::Answer::accepted && judged(lead);
  if (lead.accepted) ROSE_CHECK(compare_with_controls(lead));
  return {};
}

int Confirmation::left_for(const Lead& lead) const {
  return std::min(lab_.left(), kMostAfterFirst - (d_.runs - lead.first_run + 1));
}

Result<void> Confirmation::run_until_known(Lead& lead, const RateTest& test, bool strict, bool may_wait) {
  lead.waits = false;
  Series& series = lead.series;
  int inconclusive = lead.tally.inconclusive;
  while (lab_.left() > 0 && test.answer(lead.tally) == RateTest::Answer::open && inconclusive < kMostInconclusive &&
         (!strict || lead.tally.not_reproduced <= kReliableMisses)) {
    if (may_wait && lead.tally.conclusive() >= test.perfect() && chance_of_target(lead) < kUnlikelyTarget) {
      lead.waits = true;
      break;
    }
    // Do not start more parallel runs than the test may need: superfluous ones slow the others down.
    const int most = strict ? lab_.jobs() : lab_.repeats(lead.schedule);
    const int batch = std::min({most, lab_.left(), test.least_left(lead.tally)});
    // Assumption of the forecast: the test needs about three more hits for each miss.
    const int more = test.perfect() - lead.tally.reproduced + 3 * lead.tally.not_reproduced - batch;
    expect_more(lead, more, [&](std::size_t room, std::vector<Schedule>& next) {
      forecast_end(Simplifier(lead.schedule, lead.fired), lead.tally, room, next);
    });
    ROSE_CHECK(repeat(
        lead, batch,
        fmt::format("{}, run {}", may_wait ? "confirming" : "measuring its replay rate", lead.tally.conclusive() + 1),
        series));
    lead.tally = series.tally();
    lab_.testing_rate = lead.tally.rate();
    inconclusive = lead.tally.inconclusive;
  }
  lab_.testing_rate = 0;
  lab_.best_rate = std::max(lab_.best_rate, lead.tally.rate());
  return {};
}

// With a uniform prior, the posterior of the rate is a beta distribution. The probability that the rate exceeds the
// target is then the binomial probability of at most `reproduced` hits in `conclusive + 1` runs at the target rate.
double Confirmation::chance_of_target(const Lead& lead) const {
  const double target = options_.target_rate;
  const int runs = lead.tally.conclusive() + 1;
  double sum = 0;
  for (int hits = 0; hits <= lead.tally.reproduced; ++hits)
    sum += std::exp(std::lgamma(runs + 1.0) - std::lgamma(hits + 1.0) - std::lgamma(runs - hits + 1.0) +
                    hits * std::log(target) + (runs - hits) * std::log1p(-target));
  return sum;
}

// Checks that the faults cause the bug: makes further runs without faults until the difference between the rates is
// significant (kByChance). If it does not become significant, the acceptance is revoked.
Result<void> Confirmation::compare_with_controls(Lead& lead) {
  Schedule none;
  none.name = inputs_.config->name;
  const std::size_t index = lab_.enter(none, 0, "control run without faults").index;
  const auto chance = [&] {
    return schedule::chance_of_more(lead.tally.reproduced, lead.tally.conclusive(), d_.control_hits, d_.control_runs);
  };
  for (int runs = 0; chance() > kByChance && runs < kMostControls && lab_.left() > 0; ++runs) {
    ROSE_TRY(const std::vector<Lab::Made> made, lab_.run({index}, "one more run without faults, for comparison"));
    if (!made[0].armed) break;
  }
  if (chance() <= kByChance) return {};
  lead.accepted = false;
  d_.tried[lead.tried].note +=
      fmt::format("; without faults the bug occurs in {} of {} runs, perhaps as often as with them", d_.control_hits,
                  d_.control_runs);
  return {};
}

// Assumes the most frequent course, in which no run misses: `gate` hits decide that a simpler schedule is as good, and
// `test` hits decide the final test.
void Confirmation::forecast_end(const Simplifier& simplifier, const Tally& found, std::size_t room,
                                std::vector<Schedule>& next) const {
  const int gate = static_cast<int>(std::ceil(kAsGood / -std::log(kWorseShare)));
  const int test = RateTest(options_.target_rate).perfect();
  if (inputs_.simplify && found.not_reproduced <= found.reproduced)
    forecast_simplifying(simplifier, gate, test, room, next);
  else next.insert(next.end(), std::min(room - next.size(), static_cast<std::size_t>(test)), simplifier.current());
}

Result<void> Confirmation::repeat(Lead& lead, int runs, const std::string& doing, Series& series,
                                  std::int64_t longest_ns) {
  lab_.level = lead.level;
  ROSE_TRY(std::vector<Lab::Made> made,
           lab_.run(std::vector<std::size_t>(static_cast<std::size_t>(runs), lead.tried),
                    fmt::format("{}: {}", doing, short_words(lead.schedule)), {}, longest_ns));
  for (const Lab::Made& run : made) {
    series.add(run.result, lead.schedule);
    lead.remember(run.result);
  }
  return {};
}

}  // namespace rose::diagnose
