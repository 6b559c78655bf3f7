// The numbers that decisions are based on: the weights of the candidates' features (features.def, fitted.def), and
// odds, shares, chances and durations, in one table (weights.def) with the reason of each. `--weights FILE` sets some
// of them, so that others can be tried without a build. They are read at two hundred places of pure functions, so a
// process has one set: chosen before the first search, and not changed during one. Limits of effort (how many runs, how
// large a group) are constants in thresholds.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "diagnose/features.h"

namespace rose::diagnose {

namespace weight_values {
#define ROSE_WEIGHT(type, constant, name, value, unit, why) inline constinit type constant = value;
#include "diagnose/weights.def"
#undef ROSE_WEIGHT
}  // namespace weight_values

// The constants that the code reads; only set_weights() and OwnWeights change them.
#define ROSE_WEIGHT(type, constant, name, value, unit, why) \
  inline constexpr const type& constant = weight_values::constant;
#include "diagnose/weights.def"
#undef ROSE_WEIGHT

// The weight of a feature; set_weights() and OwnWeights change it as well.
[[nodiscard]] double weight_of(Feature feature);

// log odds have the sign of their feature, or are 0; odds and factors are above 0; shares above 0 and at most 1;
// chances between 0 and 1; a log ratio has the sign of its built-in value; durations are in nanoseconds.
enum class WeightUnit { log_odds, odds, factor, share, chance, log_ratio, count, seconds, nanoseconds, duration };
[[nodiscard]] std::string_view unit_name(WeightUnit unit);  // "log-ratio"

struct WeightEntry {
  std::string_view name;  // "odds-process"
  double value = 0;       // in force now
  WeightUnit unit = WeightUnit::odds;
  std::string_view why;
  const FeatureEntry* feature = nullptr;  // whose weight it is; null: of none
};
[[nodiscard]] std::vector<WeightEntry> weights();
// A file for --weights, with unit and reason of each.
[[nodiscard]] std::string weights_toml();

// Sets those that the file's text names; changes nothing if it contains a mistake.
[[nodiscard]] Result<void> set_weights(std::string_view toml, std::string_view file);
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

}  // namespace rose::diagnose
