#include "weights/weights.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <variant>

#include "base/file.h"
#include "base/toml.h"

namespace rose::weights {
namespace {

using Pointer = std::variant<double*, std::int64_t*, std::uint64_t*>;

struct Entry {
  std::string_view name;
  Pointer value;
  double built_in;
  WeightUnit unit;
  std::string_view why;
  const FeatureEntry* feature = nullptr;
};

constinit std::array<double, kFeatures> weights_of_features = [] {
  std::array<double, kFeatures> fitted{};
#define ROSE_FITTED(constant, weight) fitted[static_cast<std::size_t>(Feature::constant)] = weight;
#include "weights/fitted.def"
#undef ROSE_FITTED
  return fitted;
}();

const std::vector<Entry>& table() {
  static const std::vector<Entry> kTable = [] {
    std::vector<Entry> entries;
    for (const FeatureEntry& feature : features()) {
      double& weight = weights_of_features[static_cast<std::size_t>(feature.feature)];
      entries.push_back({feature.name, &weight, weight, WeightUnit::log_odds, feature.what, &feature});
    }
    entries.insert(entries.end(), {
#define ROSE_WEIGHT(type, constant, name, value, unit, why) \
  {name, &weight_values::constant, static_cast<double>(type(value)), WeightUnit::unit, why},
#include "weights/weights.def"
#undef ROSE_WEIGHT
                                  });
    return entries;
  }();
  return kTable;
}

double get(const Entry& entry) {
  return std::visit([](const auto* value) { return static_cast<double>(*value); }, entry.value);
}

void set(const Entry& entry, double to) {
  std::visit([&](auto* value) { *value = static_cast<std::remove_reference_t<decltype(*value)>>(to); }, entry.value);
}

constexpr double kMostLogOdds = 100;
constexpr double kMostFactor = 1e6;
constexpr double kMostNanoseconds = 86'400e9;

bool whole(const Entry& entry) { return !std::holds_alternative<double*>(entry.value); }

// Describes the accepted values; "" if `value` is accepted.
std::string wanted(const Entry& entry, double value) {
  const bool integral = !whole(entry) || value == std::floor(value);
  switch (entry.unit) {
    case WeightUnit::log_odds:
      return std::abs(value) <= kMostLogOdds && value * (entry.feature->sign < 0 ? -1 : 1) >= 0 ? ""
             : entry.feature->sign >= 0 ? fmt::format("at least 0 and at most {:.0f}", kMostLogOdds)
                                        : fmt::format("at least {:.0f} and at most 0", -kMostLogOdds);
    case WeightUnit::odds:
    case WeightUnit::factor:
    case WeightUnit::seconds:
      return value > 0 && value <= kMostFactor ? "" : fmt::format("more than 0 and at most {:.0f}", kMostFactor);
    case WeightUnit::share: return value > 0 && value <= 1 ? "" : "more than 0 and at most 1";
    case WeightUnit::chance: return value > 0 && value < 1 ? "" : "between 0 and 1";
    case WeightUnit::log_ratio:
      return std::isfinite(value) && value * entry.built_in > 0 ? "" : entry.built_in > 0 ? "above 0" : "below 0";
    case WeightUnit::count: return value >= 1 && value <= kMostFactor && integral ? "" : "a whole number of at least 1";
    case WeightUnit::nanoseconds:
    case WeightUnit::duration:
      return value >= 1 && value <= kMostNanoseconds && integral ? "" : "at least 1 and at most a day, in nanoseconds";
  }
  return "";
}

}  // namespace

std::string_view unit_name(WeightUnit unit) {
  switch (unit) {
    case WeightUnit::log_odds: return "log-odds";
    case WeightUnit::odds: return "odds";
    case WeightUnit::factor: return "factor";
    case WeightUnit::share: return "share";
    case WeightUnit::chance: return "chance";
    case WeightUnit::log_ratio: return "log-ratio";
    case WeightUnit::count: return "count";
    case WeightUnit::seconds: return "seconds";
    case WeightUnit::nanoseconds:
    case WeightUnit::duration: return "nanoseconds";
  }
  return "";
}

double weight_of(Feature feature) { return weights_of_features[static_cast<std::size_t>(feature)]; }

std::vector<WeightEntry> weights() {
  std::vector<WeightEntry> all;
  for (const Entry& entry : table()) all.push_back({entry.name, get(entry), entry.unit, entry.why, entry.feature});
  return all;
}

std::string weights_toml() {
  std::string out;
  for (const WeightEntry& entry : weights())
    out += fmt::format("{} = {}  # {}: {}\n", entry.name, entry.value, unit_name(entry.unit), entry.why);
  return out;
}

Result<void> set_weights(std::string_view text, std::string_view file) {
  ROSE_TRY(const toml::Value root, toml::parse(text, file));
  toml::Problems problems(file);
  toml::Table reader(root, "", problems);
  std::vector<std::pair<const Entry*, double>> read;
  for (const Entry& entry : table()) {
    const toml::Value* value = reader.get(entry.name);
    if (value == nullptr) continue;
    const double number = value->type == toml::Type::integer ? static_cast<double>(value->integer)
                          : value->type == toml::Type::real  ? value->real
                                                             : std::numeric_limits<double>::quiet_NaN();
    if (std::isnan(number)) {
      problems.add(value->place, fmt::format("{} is {}, a number is needed", entry.name, toml::quoted(*value)));
      continue;
    }
    if (const std::string must = wanted(entry, number); !must.empty())
      problems.add(value->place, fmt::format("{} = {} is out of range: it must be {}", entry.name, number, must),
                   fmt::format("{}: {}", unit_name(entry.unit), entry.why));
    read.emplace_back(&entry, number);
  }
  reader.finish();
  ROSE_CHECK(problems.result());
  for (const auto& [entry, number] : read) set(*entry, number);
  return {};
}

Result<void> read_weights(const std::string& file) {
  ROSE_TRY(const std::string text, read_file(file, toml::kMostBytes));
  return set_weights(text, file);
}

OwnWeights::OwnWeights() {
  for (const Entry& entry : table()) before_.push_back(get(entry));
}

OwnWeights::~OwnWeights() {
  for (std::size_t i = 0; i < before_.size(); ++i) set(table()[i], before_[i]);
}

}  // namespace rose::weights
