#include "weights/features.h"

namespace rose::weights {

const std::array<FeatureEntry, kFeatures>& features() {
  static constexpr std::array<FeatureEntry, kFeatures> kAll = {{
#define ROSE_FEATURE(constant, name, sign, prior, what) {Feature::constant, name, what, sign, prior},
#include "weights/features.def"
#undef ROSE_FEATURE
  }};
  return kAll;
}

}  // namespace rose::weights
