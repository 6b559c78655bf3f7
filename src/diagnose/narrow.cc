#include "diagnose/narrow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/simplify.h"
#include "diagnose/words.h"

namespace rose::diagnose {
namespace {

std::string unit_name(const Fault& fault) { return fault.group.empty() ? fault.id : fault.group; }

}  // namespace

Narrower::Narrower(Schedule schedule, const std::set<std::string>& fired,
                   const std::map<std::string, double>& weight_of_fault)
    : whole_(std::move(schedule)) {
  for (const Fault& fault : whole_.faults)
    if (fired.contains(fault.id) && std::find(proven_.begin(), proven_.end(), unit_name(fault)) == proven_.end())
      proven_.push_back(unit_name(fault));
  std::map<std::string, double> weights;
  for (const Fault& fault : whole_.faults)
    if (const auto known = weight_of_fault.find(fault.id); known != weight_of_fault.end())
      weights[unit_name(fault)] = std::max(weights[unit_name(fault)], known->second);
  std::stable_sort(proven_.begin(), proven_.end(),
                   [&](const std::string& a, const std::string& b) { return weights[a] > weights[b]; });
  assumed_ = proven_;
}

Schedule Narrower::with_only(const Units& units) const {
  Schedule part = whole_;
  for (const Fault& fault : whole_.faults)
    if (std::find(units.begin(), units.end(), unit_name(fault)) == units.end()) part = without(part, fault.id);
  return part;
}

std::optional<Narrower::Part> Narrower::next() {
  if (ended_ || proven_.empty()) return std::nullopt;
  if (halving_) {
    if (assumed_.size() > 1) {
      proposed_.assign(assumed_.begin(), assumed_.begin() + static_cast<std::ptrdiff_t>(assumed_.size() / 2));
      return Part{with_only(proposed_), fmt::format("{} of {} faults", proposed_.size(), proven_.size())};
    }
    if (assumed_ != proven_) {
      proposed_ = assumed_;
      return Part{with_only(proposed_), fmt::format("1 of {} faults", proven_.size())};
    }
    halving_ = false;
  }
  if (proven_.size() > 1) {
    if (parts_.empty()) plan_parts();
    if (parts_.empty()) {
      ended_ = true;
      return std::nullopt;
    }
    proposed_ = parts_.front();
    parts_.erase(parts_.begin());
    return Part{with_only(proposed_), fmt::format("{} of {} faults", proposed_.size(), proven_.size())};
  }
  Schedule single = with_only(proven_);
  Fault& fault = single.faults[0];
  if (single.faults.size() != 1 || !hits_by_count(fault.kind) || fault.times <= 1) return std::nullopt;
  if (!ranging_) {
    ranging_ = true;
    first_ = proven_first_ = fault.count;
    last_ = proven_last_ = fault.count + static_cast<int>(fault.times) - 1;
  }
  if (first_ == last_ && proven_first_ == first_ && proven_last_ == last_) return std::nullopt;
  proposed_last_ = first_ == last_ ? last_ : (first_ + last_) / 2;
  fault.count = first_;
  fault.times = proposed_last_ - first_ + 1;
  return Part{std::move(single),
              fmt::format("{} {} to {}", fault.kind == schedule::FaultKind::exception ? "visits" : "calls", first_,
                          proposed_last_)};
}

void Narrower::learn(bool reproduced, const std::set<std::string>& fired) {
  if (ranging_) {
    if (reproduced) {
      proven_first_ = first_;
      proven_last_ = last_ = proposed_last_;
    } else if (first_ == last_) {
      ended_ = true;  // no single call is sufficient: keep the range that reproduced the bug
    } else {
      first_ = proposed_last_ + 1;
    }
    return;
  }
  if (reproduced) {
    Units fired_units;
    for (const std::string& unit : proposed_)
      if (fired.empty() || std::any_of(whole_.faults.begin(), whole_.faults.end(),
                                       [&](const Fault& f) { return unit_name(f) == unit && fired.contains(f.id); }))
        fired_units.push_back(unit);
    proven_ = assumed_ = fired_units.empty() ? proposed_ : fired_units;
    parts_.clear();
    pieces_ = 2;
    return;
  }
  if (!halving_) return;
  if (assumed_.size() == 1) {
    halving_ = false;  // no single unit is sufficient
    return;
  }
  assumed_.erase(assumed_.begin(), assumed_.begin() + static_cast<std::ptrdiff_t>(proposed_.size()));
}

// Plans the parts for delta debugging: each piece alone, then for each piece all the others. The next call of this
// function makes smaller pieces.
void Narrower::plan_parts() {
  if (pieces_ > proven_.size()) return;
  const std::size_t size = (proven_.size() + pieces_ - 1) / pieces_;
  std::vector<Units> all_but;
  for (std::size_t from = 0; from < proven_.size(); from += size) {
    const auto begin = proven_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = proven_.begin() + static_cast<std::ptrdiff_t>(std::min(proven_.size(), from + size));
    parts_.emplace_back(begin, end);
    Units rest(proven_.begin(), begin);
    rest.insert(rest.end(), end, proven_.end());
    if (pieces_ > 2) all_but.push_back(std::move(rest));
  }
  parts_.insert(parts_.end(), all_but.begin(), all_but.end());
  pieces_ = pieces_ >= proven_.size() ? proven_.size() + 1 : std::min(proven_.size(), pieces_ * 2);
}

double narrowing_runs(const Schedule& schedule) {
  const std::size_t faults = schedule.faults.size();
  const int calls = faults == 1 && hits_by_count(schedule.faults[0].kind) ? schedule.faults[0].times : 1;
  return std::log2(
      static_cast<double>(std::max({std::size_t{1}, faults, static_cast<std::size_t>(std::max(1, calls))})));
}

}  // namespace rose::diagnose
