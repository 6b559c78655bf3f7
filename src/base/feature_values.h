// The features by which a model ranks a candidate or suspect: one number for each feature. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace rose {

// `Feature`: an enumeration whose last member is `count`.
template <class Feature>
class FeatureValues {
 public:
  double& operator[](Feature feature) { return values_[static_cast<std::size_t>(feature)]; }
  double operator[](Feature feature) const { return values_[static_cast<std::size_t>(feature)]; }
  // Sets the feature to `to` if this is larger than its present value.
  void raise(Feature feature, double to) {
    if (to > (*this)[feature]) (*this)[feature] = to;
  }

 private:
  std::array<double, static_cast<std::size_t>(Feature::count)> values_{};
};

// What is known about a feature before its weight is fitted.
template <class Feature>
struct FeatureDescription {
  Feature feature{};
  std::string_view name;  // "bug-alone"
  std::string_view what;
  int sign = 0;      // the sign that its weight must have; 0: the weight is not fitted and must be positive
  double prior = 0;  // its weight before it is fitted
};

}  // namespace rose
