#include "schedule/rate.h"

#include <algorithm>
#include <cmath>

namespace rose::schedule {
namespace {

constexpr double kZ = 1.959963984540054;  // two-sided 95 %
constexpr double kRounding = 1e-9;        // 8 of 10 is 80 %, whatever binary fractions say
constexpr double kRarely = 100;           // one wrong rejection in so many

}  // namespace

void Tally::add(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced: ++reproduced; return;
    case Verdict::not_reproduced: ++not_reproduced; return;
    case Verdict::inconclusive: ++inconclusive; return;
  }
}

double Tally::rate() const {
  return conclusive() == 0 ? 0 : static_cast<double>(reproduced) / conclusive();
}

std::pair<double, double> Tally::interval() const {
  if (conclusive() == 0) return {0, 1};
  const double n = conclusive();
  const double p = rate();
  const double middle = (p + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  const double half = kZ / (1 + kZ * kZ / n) * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  // The exact bounds at p = 0 and p = 1 are 0 and 1; rounding must not push them past.
  return {reproduced == 0 ? 0 : std::max(0.0, middle - half),
          not_reproduced == 0 ? 1 : std::min(1.0, middle + half)};
}

bool undecided(const Tally& tally, double target, int planned) {
  const int left = planned - tally.runs();
  if (left <= 0) return false;
  const int most = tally.conclusive() + left;  // conclusive runs there can be in the end
  // Fewer than half conclusive is inconclusive, whatever the rate. Once that can't be mended, no
  // run changes the outcome; while it can, another run may.
  if (2 * most < planned) return false;
  if (2 * tally.conclusive() < tally.runs()) return true;
  const double best = static_cast<double>(tally.reproduced + left) / most;
  const double worst = static_cast<double>(tally.reproduced) / most;
  return best + kRounding >= target && worst + kRounding < target;
}

bool hopeless(const Tally& tally, double target) {
  if (tally.not_reproduced == 0 || target <= 0) return false;
  if (target >= 1) return true;
  const double half = target / 2;
  const double evidence = tally.reproduced * std::log(half / target) + tally.not_reproduced * std::log((1 - half) / (1 - target));
  return evidence >= std::log(kRarely);
}

double upper_bound_without_hit(int conclusive) {
  if (conclusive <= 0) return 1;
  return 1 - std::pow(0.05, 1.0 / conclusive);
}

}  // namespace rose::schedule
