#include "diagnose/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/units.h"
#include "weights/features.h"
#include "weights/weights.h"

namespace rose::diagnose {
namespace {

using schedule::FaultKind;

constexpr double kLeastShare = 1e-6;  // keeps the logarithm of a share of 0 finite

void set_kind(const Candidate& c, Features& into) {
  switch (c.kind) {
    case FaultKind::crash:
    case FaultKind::pause:
      into[Feature::own_end] = c.own_end;
      into[Feature::waited_for_disk] = c.blocked;
      return;
    case FaultKind::partition:
    case FaultKind::network: into[Feature::network] = 1; return;
    case FaultKind::clock:
      into[Feature::clock] = 1;
      into[Feature::clock_noticed] = c.stepped || c.complained;
      return;
    case FaultKind::descriptors:
    case FaultKind::memory:
    case FaultKind::cpu:
    case FaultKind::disk_full:
    case FaultKind::disk_slow: return;
    case FaultKind::exception: into[Feature::exception] = 1; return;
    case FaultKind::block:
    case FaultKind::syscall: {
      constexpr Feature kByOrdinariness[] = {Feature::resource_error, Feature::other_error, Feature::everyday_error,
                                             Feature::usual_error};
      into[kByOrdinariness[std::clamp(c.ordinariness, 0, 3)]] = 1;
      return;
    }
  }
}

Features features_of(const Candidate& c, std::optional<std::int64_t> written, const std::set<std::string>& without) {
  Features features;
  if (!without.contains("kinds") || c.kind == FaultKind::syscall) set_kind(c, features);
  else features[Feature::other_error] = 1;
  features[Feature::symptom] = c.symptom;
  features[Feature::perhaps_symptom] = c.perhaps_symptom;
  features[Feature::profiled] = c.profiled;
  features[Feature::usual] = -std::log(std::max(c.usual, kLeastShare));
  features[Feature::foreign_program] = c.foreign;
  features[Feature::first_error] = c.first;
  features[Feature::fatal] = c.fatal;
  features[Feature::plainness] = std::log(std::max(c.plainness, kLeastShare));
  if (written && !without.contains("nearness"))
    features[Feature::to_end] =
        std::log1p(static_cast<double>(std::max<std::int64_t>(0, *written - c.last_ts)) / static_cast<double>(kSecond));
  return features;
}

double log_odds(const Features& features) {
  double sum = 0;
  for (const FeatureEntry& entry : weights::features()) sum += weight_of(entry.feature) * features[entry.feature];
  return sum;
}

}  // namespace

std::vector<Candidate> weighed(std::vector<Candidate> candidates, std::optional<std::int64_t> written,
                               const std::set<std::string>& without) {
  double most = -std::numeric_limits<double>::infinity(), all = 0;
  for (Candidate& c : candidates) {
    if (c.foreign) c.why += "; the test deployment does not run that program";
    c.features = features_of(c, written, without);
    c.weight = log_odds(c.features);
    most = std::max(most, c.weight);
  }
  for (Candidate& c : candidates) all += c.weight = std::exp(c.weight - most);
  for (Candidate& c : candidates) c.weight /= all;
  std::vector<Candidate*> likeliest;
  for (Candidate& c : candidates) likeliest.push_back(&c);
  std::stable_sort(likeliest.begin(), likeliest.end(),
                   [](const Candidate* a, const Candidate* b) { return a->weight > b->weight; });
  int rank = 0;
  for (Candidate* c : likeliest) c->rank = ++rank;
  return candidates;
}

}  // namespace rose::diagnose
