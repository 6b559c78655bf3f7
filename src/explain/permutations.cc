#include "explain/permutations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace rose::explain {
namespace {

constexpr std::size_t kMostOfSide = 32;
// If there are at most this many ways to label the runs, all are tried (13 runs have 1716 ways). Otherwise a fixed
// sample of this size is tried; its error is below 0.01.
constexpr std::size_t kMostWays = 4'000;

}  // namespace

double binomial(std::size_t n, std::size_t k) {
  double out = 1;
  for (std::size_t i = 1; i <= k; ++i) out *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return out;
}

Permutations::Permutations(std::size_t failing, std::size_t sound)
    : failing_(std::min(failing, kMostOfSide)), sound_(std::min(sound, kMostOfSide)), first_sound_(failing) {}

void Permutations::add(const std::vector<bool>& has) {
  std::uint64_t pattern = 0;
  for (std::size_t i = 0; i < failing_; ++i) pattern |= std::uint64_t{has[i]} << i;
  for (std::size_t i = 0; i < sound_; ++i) pattern |= std::uint64_t{has[first_sound_ + i]} << (failing_ + i);
  patterns_.insert(pattern);
  best_.clear();
}

double Permutations::best_contrast(std::uint64_t called_failing) const {
  double best = 0;
  for (const std::uint64_t pattern : patterns_) {
    const auto failing = static_cast<double>(std::popcount(pattern & called_failing));
    const auto sound = static_cast<double>(std::popcount(pattern & ~called_failing));
    best = std::max(best, std::abs(failing / static_cast<double>(failing_) - sound / static_cast<double>(sound_)));
  }
  return best;
}

void Permutations::try_all() const {
  const std::size_t runs = failing_ + sound_;
  std::vector<bool> called(runs);
  std::fill(called.begin(), called.begin() + static_cast<std::ptrdiff_t>(failing_), true);
  const auto take = [&] {
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < runs; ++i) mask |= std::uint64_t{called[i]} << i;
    best_.push_back(best_contrast(mask));
  };
  if (binomial(runs, failing_) <= static_cast<double>(kMostWays)) {
    do take();  // begins with the true labels
    while (std::prev_permutation(called.begin(), called.end()));
  } else {
    std::mt19937_64 random(1);  // NOLINT: the same input gives the same result
    take();
    while (best_.size() < kMostWays) {
      for (std::size_t i = runs - 1; i > 0; --i) {
        const std::size_t other = random() % (i + 1);
        const bool swapped = called[i];
        called[i] = called[other];
        called[other] = swapped;
      }
      take();
    }
  }
  std::sort(best_.begin(), best_.end());
}

double Permutations::chance(double contrast) const {
  if (failing_ == 0 || sound_ == 0) return 1;
  if (best_.empty()) try_all();
  const auto first = std::lower_bound(best_.begin(), best_.end(), contrast - 1e-9);
  return std::max(1.0, static_cast<double>(best_.end() - first)) / static_cast<double>(best_.size());
}

}  // namespace rose::explain
