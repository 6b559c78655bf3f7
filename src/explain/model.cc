#include "explain/model.h"
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/toml.h"
#include "explain/explain.h"
#include "explain/function_names.h"

namespace rose::explain {
namespace {

constexpr double kMostWeight = 100;
constexpr double kLeastPrinted = 0.05;  // contributions below this are not printed

std::array<double, kFeatures>& weights() {
  static std::array<double, kFeatures> all = [] {
    std::array<double, kFeatures> built_in{};
#define ROSE_FITTED(constant, weight) built_in[static_cast<std::size_t>(Feature::constant)] = weight;
#include "explain/fitted.def"
#undef ROSE_FITTED
    return built_in;
  }();
  return all;
}

}  // namespace

double weight(Feature feature) { return weights()[static_cast<std::size_t>(feature)]; }

double strength(const Features& of) {
  double sum = 0;
  for (const FeatureEntry& one : features()) sum += weight(one.feature) * of[one.feature];
  return sum;
}

std::vector<Contribution> contributions(const Features& of) {
  std::vector<Contribution> out;
  for (const FeatureEntry& one : features())
    if (const double value = weight(one.feature) * of[one.feature]; value != 0) out.push_back({one.name, value});
  std::stable_sort(out.begin(), out.end(),
                   [](const Contribution& a, const Contribution& b) { return std::abs(a.value) > std::abs(b.value); });
  return out;
}

std::string contribution_words(const Features& of) {
  std::string out;
  for (const Contribution& one : contributions(of))
    if (std::abs(one.value) >= kLeastPrinted)
      out += fmt::format("{}{} {:+.1f}", out.empty() ? "" : ", ", one.name, one.value);
  return out;
}

void score(std::vector<Suspect>& suspects) {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const Suspect& one : suspects) most = std::max(most, strength(one.features));
  for (Suspect& one : suspects) sum += one.score = std::exp(strength(one.features) - most);
  for (Suspect& one : suspects) one.score /= sum;
  std::stable_sort(suspects.begin(), suspects.end(),
                   [](const Suspect& x, const Suspect& y) { return x.score > y.score; });
}

std::string weights_toml() {
  std::string out;
  for (const FeatureEntry& one : features())
    out += fmt::format("{} = {}  # {}\n", one.name, weight(one.feature), one.what);
  return out;
}

Result<void> set_weights(std::string_view text, std::string_view file) {
  ROSE_TRY(const toml::Value root, toml::parse(text, file));
  toml::Problems problems(file);
  toml::Table reader(root, "", problems);
  std::vector<std::pair<Feature, double>> read;
  for (const FeatureEntry& one : features()) {
    const toml::Value* value = reader.get(one.name);
    if (value == nullptr) continue;
    const double number = value->type == toml::Type::integer ? static_cast<double>(value->integer)
                          : value->type == toml::Type::real  ? value->real
                                                             : std::numeric_limits<double>::quiet_NaN();
    if (!(std::abs(number) <= kMostWeight) || number * one.sign < 0)
      problems.add(value->place,
                   fmt::format("{} is {}, a number from {:.0f} to {:.0f} is needed", one.name, toml::quoted(*value),
                               one.sign > 0 ? 0 : -kMostWeight, one.sign > 0 ? kMostWeight : 0));
    read.emplace_back(one.feature, number);
  }
  reader.finish();
  ROSE_CHECK(problems.result());
  for (const auto& [feature, number] : read) weights()[static_cast<std::size_t>(feature)] = number;
  return {};
}

void leave_out(const std::vector<std::string>& names) {
  for (const FeatureEntry& one : features())
    if (std::find(names.begin(), names.end(), one.name) != names.end())
      weights()[static_cast<std::size_t>(one.feature)] = 0;
}

OwnWeights::OwnWeights() : before_(weights()) {}
OwnWeights::~OwnWeights() { weights() = before_; }

std::vector<Suspect>::iterator find_suspect(std::vector<Suspect>& suspects, const std::string& function) {
  return std::find_if(suspects.begin(), suspects.end(),
                      [key = key_of(function)](const Suspect& one) { return key_of(one.function) == key; });
}

}  // namespace rose::explain
