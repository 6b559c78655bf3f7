#include "schedule/rate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "schedule/schedule.h"

namespace rose::schedule {
namespace {

constexpr double kTail = 0.025;     // the probability on each side of a 95 % interval
constexpr double kRounding = 1e-9;  // so that 30 of 40 count as 75 % in spite of binary rounding

// The parameters of the test. RateTest::acceptance() gives its exact error rates. The values below are for a target of
// 0.8 against a bad rate of 0.6 (the "lower rate" of rate.h).
constexpr double kBadShare = 0.75;  // the bad rate is this part of the target; for low targets see kFarEnough
// below this target, the bad rate is chosen to be as far from the target as 0.6 is from 0.8
constexpr double kFarEnough = 0.8;
constexpr double kSurelyBad = -2.197;  // log(0.1 / 0.9): a schedule at the target is rejected in one of ten tests
constexpr double kMostTarget = 0.98;   // with a higher target, no number of runs would allow a single miss

double spread(double rate) { return std::asin(std::sqrt(rate)); }

// The probability of at least `hits` hits, for a binomial distribution.
double at_least(int hits, int runs, double rate) {
  if (hits <= 0) return 1;
  if (rate <= 0) return 0;
  if (rate >= 1) return 1;
  double sum = 0;
  for (int k = hits; k <= runs; ++k)
    sum += std::exp(std::lgamma(runs + 1.0) - std::lgamma(k + 1.0) - std::lgamma(runs - k + 1.0) + k * std::log(rate) +
                    (runs - k) * std::log1p(-rate));
  return std::min(1.0, sum);
}

// Finds by bisection the rate at which `of(rate)`, an increasing function, reaches `value`.
template <typename Of>
double rate_where(double value, const Of& of) {
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (of(middle) < value ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::set<std::string> effective_units(const RunResult& result, const Schedule& schedule) {
  std::set<std::string> units;
  for (const FaultOutcome& outcome : result.faults) {
    const Fault* fault = outcome.effective() ? schedule.find(outcome.id) : nullptr;
    if (fault != nullptr) units.insert(fault->group.empty() ? "f" + fault->id : "g" + fault->group);
  }
  return units;
}

}  // namespace

struct RateTest::Strictness {
  int perfect;  // number of runs without a miss after which the test accepts
  double sure;  // log likelihood ratio at which the test accepts
  // After kMostTestRuns runs, the test accepts if the share of hits is at least bad_ + of_all * (target - bad_).
  double of_all;
};
namespace {
// The probabilities that a schedule with a rate of 0.6, and one with a rate of 0.8, is accepted: 5.9 % and 84 % in the
// first test of a search, 2.1 % and 73 % in the second, 0.3 % and 45 % in later ones. Eight tests together accept a
// schedule with a rate of 0.6 in at most a tenth of all searches.
constexpr RateTest::Strictness kFirst{8, 2.87, 0.75};
constexpr RateTest::Strictness kSecond{10, 4.6, 0.875};
constexpr RateTest::Strictness kFurther{16, 5.3, 1.125};
// Accepts three hits in a row, whose sum of log likelihood ratios is 0.863 for a target of 0.8.
constexpr RateTest::Strictness kScreening{3, 0.86, 0.75};
}  // namespace

void Tally::add(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced: ++reproduced; return;
    case Verdict::not_reproduced: ++not_reproduced; return;
    case Verdict::inconclusive: ++inconclusive; return;
  }
}

double Tally::rate() const { return conclusive() == 0 ? 0 : static_cast<double>(reproduced) / conclusive(); }

std::pair<double, double> Tally::interval() const {
  const int n = conclusive();
  if (n == 0) return {0, 1};
  const double low = reproduced == 0 ? 0 : rate_where(kTail, [&](double p) { return at_least(reproduced, n, p); });
  const double high =
      reproduced == n ? 1 : rate_where(1 - kTail, [&](double p) { return at_least(reproduced + 1, n, p); });
  return {low, high};
}

void Series::add(const RunResult& result, const Schedule& schedule) {
  if (result.verdict == Verdict::reproduced) {
    Units units = effective_units(result, schedule);
    if (std::find(enough_.begin(), enough_.end(), units) == enough_.end()) enough_.push_back(std::move(units));
  } else if (result.verdict == Verdict::inconclusive && result.oracle == OracleAnswer::miss && result.doubt.empty()) {
    unfinished_.push_back(effective_units(result, schedule));
    return;
  }
  counted_.add(result.verdict);
}

Tally Series::tally() const {
  Tally tally = counted_;
  for (const Units& units : unfinished_) {
    const bool miss = std::any_of(enough_.begin(), enough_.end(), [&](const Units& enough) {
      return !enough.empty() && std::includes(units.begin(), units.end(), enough.begin(), enough.end());
    });
    tally.add(miss ? Verdict::not_reproduced : Verdict::inconclusive);
  }
  return tally;
}

RateTest::RateTest(double target, int test_number, int most)
    : RateTest(target,
               test_number <= 1   ? kFirst
               : test_number == 2 ? kSecond
                                  : kFurther,
               most) {}

RateTest RateTest::screening(double target) { return {target, kScreening, kMostTestRuns}; }

RateTest::RateTest(double target, const Strictness& strict, int most) {
  target = std::clamp(target, 0.01, kMostTarget);
  bad_ = target * kBadShare;
  if (target < kFarEnough) {
    const double low = std::sin(std::max(0.03, spread(target) - spread(kFarEnough) + spread(kFarEnough * kBadShare)));
    bad_ = std::min(bad_, low * low);
  }
  hit_ = std::log(target / bad_);
  miss_ = std::log((1 - target) / (1 - bad_));
  accept_ = strict.sure;
  reject_ = kSurelyBad;
  perfect_ = strict.perfect;
  least_hits_ =
      static_cast<int>(std::ceil(std::min(1.0, bad_ + strict.of_all * (target - bad_)) * kMostTestRuns - kRounding));
  if (most >= kMostTestRuns) return;
  // Allow fewer runs, but no higher probability of error. For this, find the smallest number of hits with which the
  // test may accept after its last run.
  const double wrong = acceptance(bad_);
  most_ = std::max(1, most);
  least_hits_ = static_cast<int>(std::ceil(bad_ * most_));
  while (least_hits_ <= most_ && acceptance(bad_) > wrong + kRounding) ++least_hits_;
}

RateTest::Answer RateTest::answer(const Tally& tally) const {
  if (tally.not_reproduced == 0 && tally.reproduced >= perfect_) return Answer::accepted;
  const double weight = tally.reproduced * hit_ + tally.not_reproduced * miss_;
  if (weight + kRounding >= accept_) return Answer::accepted;
  if (weight - kRounding <= reject_) return Answer::rejected;
  const int left = most_ - tally.conclusive();
  if (left <= 0) return tally.reproduced >= least_hits_ ? Answer::accepted : Answer::rejected;
  return tally.reproduced + left < least_hits_ ? Answer::rejected : Answer::open;
}

int RateTest::least_left(const Tally& tally) const {
  // The number of runs after which a series of only hits, or one of only misses, decides; the smaller of the two.
  for (int more = 0;; ++more) {
    Tally hits = tally, misses = tally;
    hits.reproduced += more;
    misses.not_reproduced += more;
    if (answer(hits) != Answer::open || answer(misses) != Answer::open) return more;
  }
}

bool RateTest::likely(const Tally& tally) const {
  return tally.reproduced * hit_ + tally.not_reproduced * miss_ + kRounding >= 0;
}

template <typename End>
void RateTest::play(double rate, const End& end) const {
  std::map<std::pair<int, int>, double> open{{{0, 0}, 1.0}};
  while (!open.empty()) {
    std::map<std::pair<int, int>, double> next;
    for (const auto& [runs, chance] : open)
      for (const bool hit : {true, false}) {
        const Tally tally{runs.first + (hit ? 1 : 0), runs.second + (hit ? 0 : 1), 0};
        const double share = chance * (hit ? rate : 1 - rate);
        if (share <= 0) continue;
        if (answer(tally) == Answer::open) next[{tally.reproduced, tally.not_reproduced}] += share;
        else end(tally, share);
      }
    open = std::move(next);
  }
}

double RateTest::acceptance(double rate) const {
  double accepted = 0;
  play(rate, [&](const Tally& tally, double share) {
    if (answer(tally) == Answer::accepted) accepted += share;
  });
  return accepted;
}

std::pair<double, double> RateTest::interval(const Tally& tally) const {
  bool ends = false;
  play(0.5, [&](const Tally& end, double) {
    ends = ends || (end.reproduced == tally.reproduced && end.not_reproduced == tally.not_reproduced);
  });
  if (!ends) return tally.interval();
  const double seen = tally.rate();
  const auto at_or = [&](bool above, double rate) {
    double sum = 0;
    play(rate, [&](const Tally& end, double share) {
      if (above ? end.rate() >= seen - kRounding : end.rate() <= seen + kRounding) sum += share;
    });
    return sum;
  };
  const double low = tally.reproduced == 0 ? 0 : rate_where(kTail, [&](double p) { return at_or(true, p); });
  const double high =
      tally.not_reproduced == 0 ? 1 : rate_where(1 - kTail, [&](double p) { return 1 - at_or(false, p); });
  return {low, high};
}

double chance_of_more(int hits, int runs, int other_hits, int others) {
  const int all = runs + others;
  const int all_hits = hits + other_hits;
  const auto log_choose = [](int n, int k) {
    return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
  };
  double sum = 0;
  for (int k = hits; k <= std::min(runs, all_hits); ++k)
    if (all_hits - k <= others)
      sum += std::exp(log_choose(runs, k) + log_choose(others, all_hits - k) - log_choose(all, all_hits));
  return std::min(1.0, sum);
}

double upper_bound_without_hit(int conclusive) {
  if (conclusive <= 0) return 1;
  return 1 - std::pow(0.05, 1.0 / conclusive);
}

}  // namespace rose::schedule
