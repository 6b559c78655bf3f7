// Features: numbers that express the evidence that a candidate belongs, or does not belong, to the cause. The model
// weights them, and they are exported with each candidate. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/feature_values.h"

namespace rose::weights {

enum class Feature : std::uint8_t {
#define ROSE_FEATURE(constant, name, sign, prior, what) constant,
#include "weights/features.def"
#undef ROSE_FEATURE
  count
};
inline constexpr std::size_t kFeatures = static_cast<std::size_t>(Feature::count);

using Features = FeatureValues<Feature>;
using FeatureEntry = FeatureDescription<Feature>;
[[nodiscard]] const std::array<FeatureEntry, kFeatures>& features();

}  // namespace rose::weights
