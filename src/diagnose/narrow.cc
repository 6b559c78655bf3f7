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

Narrower::Narrower(Schedule schedule, const std::set<std::string>& fired, const std::map<std::string, double>& believed)
    : whole_(std::move(schedule)) {
  for (const Fault& fault : whole_.faults)
    if (fired.contains(fault.id) && std::find(sure_.begin(), sure_.end(), unit_name(fault)) == sure_.end())
      sure_.push_back(unit_name(fault));
  std::map<std::string, double> belief;
  for (const Fault& fault : whole_.faults)
    if (const auto known = believed.find(fault.id); known != believed.end())
      belief[unit_name(fault)] = std::max(belief[unit_name(fault)], known->second);
  std::stable_sort(sure_.begin(), sure_.end(),
                   [&](const std::string& a, const std::string& b) { return belief[a] > belief[b]; });
  believed_ = sure_;
}

Schedule Narrower::with_only(const Units& units) const {
  Schedule part = whole_;
  for (const Fault& fault : whole_.faults)
    if (std::find(units.begin(), units.end(), unit_name(fault)) == units.end()) part = without(part, fault.id);
  return part;
}

std::optional<Narrower::Part> Narrower::next() {
  if (ended_ || sure_.empty()) return std::nullopt;
  if (halving_) {
    if (believed_.size() > 1) {
      asked_.assign(believed_.begin(), believed_.begin() + static_cast<std::ptrdiff_t>(believed_.size() / 2));
      return Part{with_only(asked_), fmt::format("{} of {} faults", asked_.size(), sure_.size())};
    }
    if (believed_ != sure_) {
      asked_ = believed_;
      return Part{with_only(asked_), fmt::format("1 of {} faults", sure_.size())};
    }
    halving_ = false;
  }
  if (sure_.size() > 1) {
    if (parts_.empty()) plan_parts();
    if (parts_.empty()) {
      ended_ = true;
      return std::nullopt;
    }
    asked_ = parts_.front();
    parts_.erase(parts_.begin());
    return Part{with_only(asked_), fmt::format("{} of {} faults", asked_.size(), sure_.size())};
  }
  Schedule single = with_only(sure_);
  Fault& fault = single.faults[0];
  if (single.faults.size() != 1 || !hits_by_count(fault.kind) || fault.times <= 1) return std::nullopt;
  if (!ranging_) {
    ranging_ = true;
    first_ = sure_first_ = fault.count;
    last_ = sure_last_ = fault.count + static_cast<int>(fault.times) - 1;
  }
  if (first_ == last_ && sure_first_ == first_ && sure_last_ == last_) return std::nullopt;
  asked_last_ = first_ == last_ ? last_ : (first_ + last_) / 2;
  fault.count = first_;
  fault.times = asked_last_ - first_ + 1;
  return Part{std::move(single),
              fmt::format("{} {} to {}", fault.kind == schedule::FaultKind::exception ? "visits" : "calls", first_,
                          asked_last_)};
}

void Narrower::learn(bool shows, const std::set<std::string>& fired) {
  if (ranging_) {
    if (shows) {
      sure_first_ = first_;
      sure_last_ = last_ = asked_last_;
    } else if (first_ == last_) {
      ended_ = true;  // it takes more than one call: the range that reproduced the bug stays
    } else {
      first_ = asked_last_ + 1;
    }
    return;
  }
  if (shows) {
    Units came;
    for (const std::string& unit : asked_)
      if (fired.empty() || std::any_of(whole_.faults.begin(), whole_.faults.end(),
                                       [&](const Fault& f) { return unit_name(f) == unit && fired.contains(f.id); }))
        came.push_back(unit);
    sure_ = believed_ = came.empty() ? asked_ : came;
    parts_.clear();
    pieces_ = 2;
    return;
  }
  if (!halving_) return;
  if (believed_.size() == 1) {
    halving_ = false;  // no single one
    return;
  }
  believed_.erase(believed_.begin(), believed_.begin() + static_cast<std::ptrdiff_t>(asked_.size()));
}

// Pieces, then all but one piece; smaller pieces if none of these reproduces it.
void Narrower::plan_parts() {
  if (pieces_ > sure_.size()) return;
  const std::size_t size = (sure_.size() + pieces_ - 1) / pieces_;
  std::vector<Units> all_but;
  for (std::size_t from = 0; from < sure_.size(); from += size) {
    const auto begin = sure_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = sure_.begin() + static_cast<std::ptrdiff_t>(std::min(sure_.size(), from + size));
    parts_.emplace_back(begin, end);
    Units rest(sure_.begin(), begin);
    rest.insert(rest.end(), end, sure_.end());
    if (pieces_ > 2) all_but.push_back(std::move(rest));
  }
  parts_.insert(parts_.end(), all_but.begin(), all_but.end());
  pieces_ = pieces_ >= sure_.size() ? sure_.size() + 1 : std::min(sure_.size(), pieces_ * 2);
}

double narrowing_runs(const Schedule& schedule) {
  const std::size_t faults = schedule.faults.size();
  const int calls = faults == 1 && hits_by_count(schedule.faults[0].kind) ? schedule.faults[0].times : 1;
  return std::log2(
      static_cast<double>(std::max({std::size_t{1}, faults, static_cast<std::size_t>(std::max(1, calls))})));
}

}  // namespace rose::diagnose
