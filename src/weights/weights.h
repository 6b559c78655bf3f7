// The numbers that decisions are based on: the weights of the candidates' features (features.def, fitted.def), and
// odds, shares, chances and durations, in one table (weights.def) with the reason of each. `--weights FILE` changes
// some of them without a build. They are read at two hundred places and not passed as arguments, so a process has one
// set of values, which is chosen before the first search and does not change during a search. Constants that limit the
// effort of the search (numbers of runs, sizes of groups) are in diagnose/thresholds.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "weights/features.h"

namespace rose::weights {

namespace weight_values {
#define ROSE_WEIGHT(type, constant, name, value, unit, why) inline constinit type constant = value;
#include "weights/weights.def"
#undef ROSE_WEIGHT
}  // namespace weight_values

// The names under which the code reads the values. Only set_weights() and OwnWeights change these.
#define ROSE_WEIGHT(type, constant, name, value, unit, why) \
  inline constexpr const type& constant = weight_values::constant;
#include "weights/weights.def"
#undef ROSE_WEIGHT

// The weight of a feature; set_weights() and OwnWeights change it as well.
[[nodiscard]] double weight_of(Feature feature);

// The ranges of values: log odds have the sign of their feature, or are 0; odds and factors are above 0; shares above 0
// and at most 1; chances between 0 and 1; a log ratio has the sign of its built-in value; durations are in nanoseconds.
enum class WeightUnit { log_odds, odds, factor, share, chance, log_ratio, count, seconds, nanoseconds, duration };
[[nodiscard]] std::string_view unit_name(WeightUnit unit);  // "log-ratio"

struct WeightEntry {
  std::string_view name;  // "odds-usual"
  double value = 0;       // the value in use
  WeightUnit unit = WeightUnit::odds;
  std::string_view why;
  const FeatureEntry* feature = nullptr;  // the feature whose weight this is; nullptr: none
};
[[nodiscard]] std::vector<WeightEntry> weights();
// The weights in use as the text of a file for --weights, with the unit and reason of each.
[[nodiscard]] std::string weights_toml();

// Sets the weights that `toml`, the text of `file`, names. If it contains an error, returns that and changes nothing.
[[nodiscard]] Result<void> set_weights(std::string_view toml, std::string_view file);
// Reads `file` and sets the weights that it names.
[[nodiscard]] Result<void> read_weights(const std::string& file);

// For tests: restores the previous values when destroyed.
class OwnWeights {
 public:
  OwnWeights();
  ~OwnWeights();
  OwnWeights(const OwnWeights&) = delete;
  OwnWeights& operator=(const OwnWeights&) = delete;

 private:
  std::vector<double> before_;
};

}  // namespace rose::weights
