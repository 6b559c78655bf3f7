// For each function, the evidence for and against the hypothesis that it mishandled the fault. The features are named
// numbers. They are computed from the runs, weighted by the model, and exported with each suspect. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/feature_values.h"

namespace rose::explain {

struct Input;
struct Comparison;

enum class Feature : std::uint8_t {
#define ROSE_FEATURE(constant, name, sign, prior, what) constant,
#include "explain/features.def"
#undef ROSE_FEATURE
  count
};
inline constexpr std::size_t kFeatures = static_cast<std::size_t>(Feature::count);

using Features = FeatureValues<Feature>;
using FeatureEntry = FeatureDescription<Feature>;
[[nodiscard]] const std::array<FeatureEntry, kFeatures>& features();

// All evidence about one function.
struct Evidence {
  Features features;
  std::string name;           // the longest form of the name that occurred
  std::size_t name_size = 0;  // its length without type arguments
  std::string file;
  int line = 0;
  std::set<std::string> nodes;
  bool at_failed_call = false;  // the function was on the stack of a call that a fault made fail
  // the function reported the error to its caller, so what it does and returns follows from the error
  bool reported = false;
  // `fresh`: the nodes ("": any) on which all failing runs enter the function after the fault, and no other run does.
  // `lost`: the nodes on which all correct runs enter it after the fault, and no failing run does.
  std::set<std::string> fresh, lost;
  std::string named_by;  // the word of the symptom that its name contains
  // weight of the difference that the features from `differs` to `dead` (in the order of features.def) describe
  double heaviest_of_own = 0;
  std::multimap<double, std::string, std::greater<>> why;  // heaviest first

  void tell(double weight, const std::string& node, std::string reason);
};

// The evidence about every function of the application about which anything is known, by key_of().
[[nodiscard]] std::map<std::string, Evidence> evidence_of(const Input& input, const Comparison& comparison);
// The keys of the functions that correct runs enter. `after_fault`: only after the moment of the fault.
[[nodiscard]] std::set<std::string> usual_functions(const Input& input, bool after_fault);

// Adds the features that follow from the name alone: `helper` and `base`.
void add_name(const std::string& function, Features& into);

}  // namespace rose::explain
