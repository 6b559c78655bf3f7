#include "diagnose/simplify.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "diagnose/words.h"
#include "evidence/forms.h"

namespace rose::diagnose {

using evidence::path_glob;
namespace {

// Pauses and partitions are not made shorter than this, because a shorter one is not easier to understand.
constexpr std::int64_t kShortest = 2 * kSecond;
// The margin of shortened durations: a duration that is just sufficient here may be too short on a slower or busier
// machine.
constexpr std::int64_t kMarginNumerator = 4, kMarginDenominator = 3;

// A unit is a fault, or a group of alternatives (one fault on several nodes). The members of a group are changed
// together.
bool same_unit(const Fault& fault, const std::string& unit) {
  return fault.group.empty() ? fault.id == unit : fault.group == unit;
}
std::string unit_of(const Fault& fault) { return fault.group.empty() ? fault.id : fault.group; }

std::vector<std::string> units_of(const Schedule& schedule) {
  std::vector<std::string> units;
  for (const Fault& fault : schedule.faults)
    if (std::find(units.begin(), units.end(), unit_of(fault)) == units.end()) units.push_back(unit_of(fault));
  return units;
}

const Fault* first_of(const Schedule& schedule, const std::string& unit) {
  for (const Fault& fault : schedule.faults)
    if (same_unit(fault, unit)) return &fault;
  return nullptr;
}

Schedule without_units(Schedule schedule, const std::vector<std::string>& units) {
  for (const std::string& unit : units)
    while (const Fault* fault = first_of(schedule, unit)) schedule = without(schedule, std::string(fault->id));
  return schedule;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " and " : ", ", words[i]);
  return text;
}

std::string words_of(const Condition& c) {
  switch (c.kind) {
    case ConditionKind::elapsed: return format_duration(c.elapsed_ns);
    case ConditionKind::function: return c.function;
    case ConditionKind::syscall:
      return fmt::format("{}({})", c.call.syscall,
                         c.call.path   ? *c.call.path
                         : c.call.peer ? *c.call.peer
                                       : std::string{});
    case ConditionKind::log: return fmt::format("the log line \"{}\"", c.log);
    case ConditionKind::process_state:
      return c.state == schedule::kOutOfMemory ? "a process killed for lack of memory"
                                               : fmt::format("a process that {}", c.state);
    case ConditionKind::role: return fmt::format("the role {}", c.role.empty() ? c.function : c.role);
  }
  return {};
}

// Rounds a duration so that it does not suggest a precision that it does not have: to half seconds below 2 s, to
// seconds below 20 s, to 5 s below a minute, and to 10 s above.
std::int64_t readable(std::int64_t ns) {
  const std::int64_t step = ns >= 60 * kSecond   ? 10 * kSecond
                            : ns >= 20 * kSecond ? 5 * kSecond
                            : ns >= 2 * kSecond  ? kSecond
                                                 : kSecond / 2;
  return std::max(step, (ns + step / 2) / step * step);
}

std::string lasts(const Fault& fault, std::int64_t before) {
  return fmt::format("{} lasts {} instead of {}", fault.id, format_duration(fault.duration_ns),
                     format_duration(before));
}

// For people: "crash-n1 comes at the 1st openat instead of the 5th; both reproduce it, so the count does not matter".
std::string counts(const std::string& id, const std::string& what, int count, int before) {
  return fmt::format("{} comes at the {} {} instead of the {}{}", id, ordinal_text(count), what, ordinal_text(before),
                     count == 1 ? "; both reproduce it, so the count does not matter" : "");
}

void make_readable(std::vector<Condition>& conditions) {
  for (Condition& c : conditions)
    if (c.kind == ConditionKind::elapsed && c.elapsed_ns >= kSecond / 2) c.elapsed_ns = readable(c.elapsed_ns);
}

}  // namespace

Schedule without(const Schedule& schedule, const std::string& id) {
  Schedule smaller;
  smaller.name = schedule.name;
  smaller.roles = schedule.roles;
  const Fault* found = schedule.find(id);
  if (found == nullptr) return schedule;
  const Fault& gone = *found;
  for (const Fault& old : schedule.faults) {
    if (old.id == id) continue;
    Fault fault = old;
    const auto it = std::find(fault.after.begin(), fault.after.end(), gone.id);
    if (it != fault.after.end()) {
      fault.after.erase(it);
      for (const std::string& before : gone.after)
        if (std::find(fault.after.begin(), fault.after.end(), before) == fault.after.end())
          fault.after.push_back(before);
      // Add the removed fault's waiting time to that of its follower. Other conditions cannot be combined and are
      // dropped.
      const bool timed = gone.when.size() == 1 && gone.when[0].kind == ConditionKind::elapsed;
      const bool fault_timed = !fault.when.empty() && fault.when[0].kind == ConditionKind::elapsed;
      const bool process_fault = !hits_by_count(fault.kind);
      if (timed && fault_timed) fault.when[0].elapsed_ns += gone.when[0].elapsed_ns;
      else if (timed && process_fault) fault.when.insert(fault.when.begin(), gone.when[0]);
    }
    smaller.faults.push_back(std::move(fault));
  }
  return smaller;
}

Simplifier::Simplifier(Schedule schedule, const std::set<std::string>& fired, bool faults_only,
                       std::set<std::string> certain)
    : current_(std::move(schedule)), certain_(std::move(certain)), faults_only_(faults_only) {
  plan_drops(fired);
}

void Simplifier::plan_drops(const std::set<std::string>& fired) {
  // Alternatives that never fired, although another one of their group did: their nodes may not matter.
  std::vector<std::string> idle;
  Batch never;  // removals of faults and groups that never fired, proposed together
  const auto has_certain = [certain = certain_](const Schedule& of, const std::string& unit) {
    return std::any_of(of.faults.begin(), of.faults.end(),
                       [&](const Fault& f) { return same_unit(f, unit) && certain.contains(f.id); });
  };
  const auto only_uncertain = [has_certain](const Schedule& of) {
    const std::vector<std::string> units = units_of(of);
    return std::none_of(units.begin(), units.end(), [&](const std::string& unit) { return has_certain(of, unit); });
  };
  const auto drop = [only_uncertain](std::vector<std::string> units, bool unconditionally) {
    Step step;
    step.drops_faults = true;
    step.change = [units = std::move(units), only_uncertain,
                   unconditionally](const Schedule& from) -> std::optional<Changed> {
      std::vector<std::string> there;
      for (const std::string& unit : units)
        if (first_of(from, unit) != nullptr) there.push_back(unit);
      if (there.empty() || there.size() >= units_of(from).size()) return std::nullopt;
      Changed changed{without_units(from, there), fmt::format("without {}", list_of(there))};
      if (!unconditionally && !only_uncertain(from) && only_uncertain(changed.schedule)) return std::nullopt;
      return changed;
    };
    return step;
  };
  for (const std::string& unit : units_of(current_)) {
    const bool any = std::any_of(current_.faults.begin(), current_.faults.end(),
                                 [&](const Fault& f) { return same_unit(f, unit) && fired.contains(f.id); });
    if (!any) never.push_back(drop({unit}, true));
    for (const Fault& fault : current_.faults)
      if (any && same_unit(fault, unit) && !fired.contains(fault.id)) idle.push_back(fault.id);
  }
  if (!idle.empty()) {
    Step step;
    step.drops_faults = true;
    step.change = [idle](const Schedule& from) -> std::optional<Changed> {
      Changed changed{from,
                      fmt::format("without {}, which never fired", list_of(idle), idle.size() == 1 ? "its" : "their")};
      for (const std::string& id : idle) changed.schedule = without(changed.schedule, id);
      for (Fault& fault : changed.schedule.faults)
        if (!fault.group.empty() && std::count_if(changed.schedule.faults.begin(), changed.schedule.faults.end(),
                                                  [&](const Fault& other) { return other.group == fault.group; }) == 1)
          fault.group.clear();
      return changed;
    };
    never.insert(never.begin(), std::move(step));
  }
  for (Step& step : never) step.likely = true;
  if (!never.empty()) batches_.push_back(std::move(never));
  // Remove units from the last to the first, because later faults are more likely to be consequences; large parts
  // first.
  std::vector<std::string> units = units_of(current_);
  std::reverse(units.begin(), units.end());
  // Before that, propose to remove all uncertain faults at once: the certain ones alone may explain the failure.
  std::vector<std::string> uncertain;
  for (const std::string& unit : units)
    if (!has_certain(current_, unit)) uncertain.push_back(unit);
  if (uncertain.size() < units.size() && uncertain.size() > 1) batches_.push_back({drop(uncertain, false)});
  std::stable_partition(units.begin(), units.end(),
                        [&](const std::string& unit) { return !has_certain(current_, unit); });
  for (std::size_t size = std::max<std::size_t>(1, units.size() / 2);; size = std::max<std::size_t>(1, size / 2)) {
    for (std::size_t i = 0; i < units.size(); i += size) {
      const auto begin = units.begin() + static_cast<std::ptrdiff_t>(i);
      batches_.push_back({drop({begin, begin + static_cast<std::ptrdiff_t>(std::min(size, units.size() - i))}, false)});
    }
    if (size == 1) break;
  }
}

void Simplifier::plan_details() {
  const auto change = [&](const std::string& unit, std::function<std::optional<std::string>(Fault&)> edit) -> Change {
    return [unit, edit = std::move(edit)](const Schedule& from) -> std::optional<Changed> {
      Changed changed{from, {}};
      for (Fault& fault : changed.schedule.faults) {
        if (!same_unit(fault, unit)) continue;
        const std::optional<std::string> what = edit(fault);
        if (!what) return std::nullopt;
        if (changed.what.empty()) changed.what = *what;
      }
      if (changed.what.empty()) return std::nullopt;
      return changed;
    };
  };
  Batch likely;              // changes that hardly ever matter, proposed together
  std::vector<Step> others;  // changes that may matter, proposed one by one
  const std::vector<std::string> units = units_of(current_);
  for (const std::string& unit : units) {
    const Fault& first = *first_of(current_, unit);
    if (hits_by_count(first.kind) && first.times != 1) {
      const auto once = [](Fault& fault) -> std::optional<std::string> {
        std::string what = fmt::format(
            "{} {} instead of {}", fault.id, fault.kind == FaultKind::exception ? "is thrown once" : "fails one call",
            fault.times < 0 ? std::string("all from then on") : fmt::format("{}", fault.times));
        fault.times = 1;
        return what;
      };
      // A system usually mishandles the first of several errors; the others follow because it tries again.
      others.push_back({.change = change(unit, once), .likely = true});
    }
    if (first.kind == FaultKind::syscall && schedule::is_short_then_fails(first)) {
      // The program may have taken the short result for a complete one. Then the bug does not need the error.
      const auto only_short = [](Fault& fault) -> std::optional<std::string> {
        if (fault.error == 0) return std::nullopt;
        std::string what = fmt::format("{} is only short, and no further call fails", fault.id);
        fault.error = 0;
        fault.times = 1;
        return what;
      };
      others.push_back({.change = change(unit, only_short)});
    }
    // All conditions but the last hardly ever matter: the last one determines the point at which the fault is injected.
    for (std::size_t i = 0; i < first.when.size(); ++i) {
      const Condition gone = first.when[i];
      Step step{change(unit, [gone](Fault& fault) -> std::optional<std::string> {
        const auto it = std::find(fault.when.begin(), fault.when.end(), gone);
        if (it == fault.when.end()) return std::nullopt;
        fault.when.erase(it);
        return fmt::format("{} does not wait for {}", fault.id, words_of(gone));
      })};
      // A fault that has no other condition would come at the start of the workload, which is not just earlier.
      step.drops_time = gone.kind == ConditionKind::elapsed && (hits_by_count(first.kind) || first.when.size() > 1);
      if (i + 1 < first.when.size()) likely.push_back(std::move(step));
      else others.push_back(std::move(step));
    }
    // Propose the first occurrence: if that reproduces the bug as often, the count does not matter. Then propose half
    // the count, so that a reader learns roughly how many occurrences are needed.
    for (const bool halve : {false, true}) {
      const auto lower = [halve](int& count) {
        const int less = halve ? (count + 1) / 2 : 1;
        return less < count ? std::exchange(count, less) : 0;
      };
      if (hits_by_count(first.kind) && first.count > 1)
        others.push_back({change(unit, [lower](Fault& fault) -> std::optional<std::string> {
          const int before = lower(fault.count);
          if (before == 0) return std::nullopt;
          return counts(fault.id, fault.kind == FaultKind::exception ? fault.function : fault.call.syscall, fault.count,
                        before);
        })});
      if (first.before && first.before_count > 1)
        others.push_back({change(unit, [lower](Fault& fault) -> std::optional<std::string> {
          const int before = fault.before ? lower(fault.before_count) : 0;
          if (before == 0) return std::nullopt;
          return counts(fault.id, fault.before->syscall, fault.before_count, before);
        })});
      for (std::size_t i = 0; i < first.when.size(); ++i)
        if (first.when[i].count > 1)
          others.push_back({change(unit, [lower, gone = first.when[i]](Fault& fault) -> std::optional<std::string> {
            const auto it = std::find_if(fault.when.begin(), fault.when.end(), [&](Condition c) {
              c.count = gone.count;
              return c == gone;
            });
            const int before = it == fault.when.end() ? 0 : lower(it->count);
            if (before == 0) return std::nullopt;
            return counts(fault.id, words_of(*it), it->count, before);
          })});
    }
    for (std::size_t i = 0; i < first.after.size(); ++i)
      others.push_back({change(unit, [i](Fault& fault) -> std::optional<std::string> {
        // Without its predecessor, a fault's time would be counted from another point: that schedule would be
        // different, not simpler.
        if (!fault.when.empty() ? fault.when[0].kind == ConditionKind::elapsed : !hits_by_count(fault.kind))
          return std::nullopt;
        if (i >= fault.after.size()) return std::nullopt;
        std::string what = fmt::format("{} does not wait for {}", fault.id, fault.after[i]);
        fault.after.erase(fault.after.begin() + static_cast<std::ptrdiff_t>(i));
        return what;
      })});
    const std::int64_t seen = first.duration_ns;
    if (seen >= 2 * kShortest) {
      original_ns_[unit] = seen;
      const auto halve = [seen](Fault& fault) -> std::optional<std::string> {
        const std::int64_t duration = readable(fault.duration_ns / 2);
        if (fault.duration_ns < 2 * kShortest || duration >= fault.duration_ns) return std::nullopt;
        fault.duration_ns = duration;
        return lasts(fault, seen);
      };
      others.push_back({.change = change(unit, halve), .repeats = true, .shortens = unit});
    }
  }
  likely.push_back({[](const Schedule& from) -> std::optional<Changed> {
    Changed changed{from, "rounder times"};
    for (Fault& fault : changed.schedule.faults) {
      make_readable(fault.when);
      make_readable(fault.until);
      // Round durations up, never down, because a silence that is slightly too short has no effect.
      if (fault.duration_ns >= kSecond && readable(fault.duration_ns) >= fault.duration_ns)
        fault.duration_ns = readable(fault.duration_ns);
    }
    return changed;
  }});
  likely.push_back({[](const Schedule& from) -> std::optional<Changed> {
    Changed changed{from, "paths as patterns that also match in other deployments"};
    const auto widen = [](std::optional<std::string>& path, const std::string& node) {
      if (!path || path->find_first_of("*?[") != std::string::npos) return;
      if (std::string glob = path_glob(*path, node); !glob.empty()) path = std::move(glob);
    };
    for (Fault& fault : changed.schedule.faults) {
      widen(fault.call.path, fault.node);
      if (fault.before) widen(fault.before->path, fault.node);
      for (Condition& condition : fault.when) widen(condition.call.path, fault.node);
    }
    return changed;
  }});
  // Before the rounding, propose the changes that may matter, because each accepted change leaves fewer values to
  // round.
  for (Step& step : others) batches_.push_back({std::move(step)});
  for (Step& step : likely) step.likely = true;
  batches_.push_back(std::move(likely));
}

void Simplifier::leave_margins() {
  for (const std::string& unit : std::exchange(at_minimum_, {})) {
    const Fault* first = first_of(current_, unit);
    if (first == nullptr || first->duration_ns >= original_ns_.at(unit)) continue;
    const std::int64_t seen = original_ns_.at(unit);
    const std::int64_t longer = std::min(readable(first->duration_ns * kMarginNumerator / kMarginDenominator), seen);
    for (Fault& fault : current_.faults) {
      if (!same_unit(fault, unit)) continue;
      fault.duration_ns = longer;
      const auto change = std::find_if(changes_.begin(), changes_.end(),
                                       [&](const std::string& what) { return what.starts_with(fault.id + " lasts "); });
      if (change != changes_.end()) *change = lasts(fault, seen);
    }
  }
}

std::optional<Simplifier::Idea> Simplifier::apply(Batch& batch, std::vector<std::string>& words) const {
  Idea idea{.schedule = current_, .what = {}, .likely = true};
  Batch useful;
  for (Step& step : batch) {
    std::optional<Changed> changed = step.change(idea.schedule);
    if (!changed || schedule::fingerprint(changed->schedule) == schedule::fingerprint(idea.schedule)) continue;
    idea.schedule = std::move(changed->schedule);
    idea.drops_faults = idea.drops_faults || step.drops_faults;
    idea.drops_time = idea.drops_time || step.drops_time;
    idea.likely = idea.likely && step.likely;
    words.push_back(changed->what);
    useful.push_back(std::move(step));
  }
  batch = std::move(useful);
  for (const std::string& what : words) idea.what += fmt::format("{}{}", idea.what.empty() ? "" : "; ", what);
  if (batch.empty()) return std::nullopt;
  return idea;
}

std::optional<Simplifier::Idea> Simplifier::next() {
  for (;;) {
    if (batches_.empty()) {
      if (detailed_ || faults_only_) {
        leave_margins();
        return std::nullopt;
      }
      detailed_ = true;
      plan_details();
      continue;
    }
    proposed_ = std::move(batches_.front());
    batches_.pop_front();
    proposed_words_.clear();
    std::optional<Idea> idea = apply(proposed_, proposed_words_);
    if (!idea) continue;
    proposed_schedule_ = idea->schedule;
    return idea;
  }
}

void Simplifier::learn(bool reproduces) {
  Batch batch = std::exchange(proposed_, {});
  if (batch.empty()) return;
  if (reproduces) {
    current_ = std::move(proposed_schedule_);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Step& step = batch[i];
      if (step.continues && !changes_.empty()) changes_.pop_back();
      if (!step.drops_faults) changes_.push_back(proposed_words_[i]);
      step.continues = true;
      if (step.repeats) batches_.push_front({std::move(step)});
    }
  } else if (batch.size() > 1) {
    const auto middle = batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2);
    batches_.push_front(Batch(std::make_move_iterator(middle), std::make_move_iterator(batch.end())));
    batches_.push_front(Batch(std::make_move_iterator(batch.begin()), std::make_move_iterator(middle)));
  } else if (!batch[0].shortens.empty()) {
    at_minimum_.insert(batch[0].shortens);
  }
}

}  // namespace rose::diagnose
