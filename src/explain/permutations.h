// A permutation test. It computes how often chance alone separates failing from correct runs at least as clearly as a
// given difference does. The labels of the runs are exchanged in all ways. In each way, only the step that separates
// the two sides best counts, so that the result holds for the best of many steps (the maximum statistic of Westfall and
// Young, "Resampling-Based Multiple Testing", 1993). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace rose::explain {

// The number of ways to choose k of n.
[[nodiscard]] double binomial(std::size_t n, std::size_t k);

class Permutations {
 public:
  // At most 32 runs of each side are used.
  Permutations(std::size_t failing, std::size_t sound);

  // `has` contains, for each run, whether the run has a step. The failing runs come first.
  void add(const std::vector<bool>& has);

  // The share of all ways in which some step separates the sides at least as well as `contrast`. The contrast, 0 to 1,
  // is the difference between the shares of the two sides' runs that have the step. With 5 runs of each side, the
  // result is at least 2 of 252.
  [[nodiscard]] double chance(double contrast) const;

 private:
  [[nodiscard]] double best_contrast(std::uint64_t called_failing) const;
  void try_all() const;

  std::size_t failing_, sound_, first_sound_;
  std::set<std::uint64_t> patterns_;
  // the best contrast of each way to label the runs, sorted; empty: not computed yet
  mutable std::vector<double> best_;
};

}  // namespace rose::explain
