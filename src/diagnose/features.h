// The evidence for and against each candidate as (part of) the cause: named numbers, weighted by the model, and
// exported with each candidate. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rose::diagnose {

enum class Feature : std::uint8_t {
#define ROSE_FEATURE(constant, name, sign, prior, what) constant,
#include "diagnose/features.def"
#undef ROSE_FEATURE
  count
};
inline constexpr std::size_t kFeatures = static_cast<std::size_t>(Feature::count);

class Features {
 public:
  double& operator[](Feature feature) { return values_[static_cast<std::size_t>(feature)]; }
  double operator[](Feature feature) const { return values_[static_cast<std::size_t>(feature)]; }

 private:
  std::array<double, kFeatures> values_{};
};

struct FeatureEntry {
  Feature feature = Feature::own_end;
  std::string_view name;  // "own-end"
  std::string_view what;
  int sign = 0;      // the sign that its weight must have; 0: the weight is not fitted, and positive
  double prior = 0;  // its weight before anything was measured
};
[[nodiscard]] const std::array<FeatureEntry, kFeatures>& features();

}  // namespace rose::diagnose
