// One model ranks the suspects: a conditional logit over their features. A suspect's score is the probability that it,
// and none of the other suspects, mishandled the fault. The weights are fitted on recorded explanations by
// test/eval/fit, which writes fitted.def. Pure, except for the weights, which are global: they are set once, before
// anything is explained.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "explain/features.h"

namespace rose::explain {

struct Suspect;

[[nodiscard]] double weight(Feature feature);
// The sum of weight times value over all features.
[[nodiscard]] double strength(const Features& features);
// The contributions of the features to the score, the largest in either direction first. Features that contribute
// nothing are left out.
struct Contribution {
  std::string_view name;  // the feature's name
  double value = 0;       // weight times value
};
[[nodiscard]] std::vector<Contribution> contributions(const Features& features);
// "arrived +4.1, named +2.2, helper -1.0"
[[nodiscard]] std::string contribution_words(const Features& features);
// Sets the scores of the suspects and sorts them, best first.
void score(std::vector<Suspect>& suspects);
// The suspect whose key_of() equals that of this function; the end iterator if there is none.
[[nodiscard]] std::vector<Suspect>::iterator find_suspect(std::vector<Suspect>& suspects, const std::string& function);

// Lines "NAME = WEIGHT  # description", the input format of set_weights().
[[nodiscard]] std::string weights_toml();
// Sets the weights that `toml` names. If there is a mistake, nothing is changed. Errors (input): unknown names, values
// that are not finite or have the wrong sign.
[[nodiscard]] Result<void> set_weights(std::string_view toml, std::string_view file);
// Disables the features with these names.
void leave_out(const std::vector<std::string>& names);

// For tests: restores the previous values when destroyed.
class OwnWeights {
 public:
  OwnWeights();
  ~OwnWeights();
  OwnWeights(const OwnWeights&) = delete;
  OwnWeights& operator=(const OwnWeights&) = delete;

 private:
  std::array<double, kFeatures> before_;
};

}  // namespace rose::explain
