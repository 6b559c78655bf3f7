// A cluster that follows a script of what each node does, and when. Faults fire by the rules that also apply to real
// runs: conditions in their order, counts, `after`, groups. Whether the bug occurs is decided by a function, which gets
// the faults that fired and where they did.
#pragma once

#include <set>

#include "base/text.h"
#include "diagnose_world.h"

namespace rose::diagnose::test {

struct Act {
  double t = 0;  // seconds since the workload began; negative if the act is part of the start
  std::string node;
  std::string function;  // the function that is entered, or empty if the act is a call
  std::string syscall;   // the system call that is made, or empty
  std::string path;
  bool changes = true;       // whether traces contain the call
  std::uint64_t offset = 0;  // offset in the function; traces do not contain it
};

inline Act enters(double t, std::string node, std::string function) {
  return {t, std::move(node), std::move(function), "", ""};
}
inline Act calls(double t, std::string node, std::string syscall, std::string path, bool changes = true) {
  return {t, std::move(node), "", std::move(syscall), std::move(path), changes};
}

// Places in the code of the nodes. All nodes have the same places.
class Code final : public CodeMap {
 public:
  std::map<std::string, std::vector<CodePlace>, std::less<>> functions;
  std::vector<std::string> asked;  // the requests for places, for example "n1 store"

  Result<std::vector<CodePlace>> places(std::string_view node, std::string_view function) override {
    asked.push_back(fmt::format("{} {}", node, function));
    const auto found = functions.find(function);
    if (found == functions.end()) return fail(ErrorKind::input, fmt::format("no function '{}' in './node'", function));
    return found->second;
  }
};

struct Hit {
  const schedule::Fault* fault = nullptr;
  double t = 0;
  int act = -1;  // index of the act at which the fault fired, or -1 if it fired at a time
};

class Play final : public Runner {
 public:
  using Bug = std::function<bool(const std::vector<Hit>&, int run)>;
  Play(std::vector<Act> acts, Bug bug) : acts_(std::move(acts)), bug_(std::move(bug)) {}

  // If set, gives the script of each run.
  std::function<std::vector<Act>(int run)> acts_of;
  bool traced = true;
  std::function<void(const std::vector<Hit>&, Dump&)> also;  // adds to the trace of a run
  std::function<std::vector<std::string>(const std::vector<Hit>&)>
      messages;                   // messages of the failure that the run's logs contain
  std::set<std::string> unknown;  // functions that no program of the test deployment has
  std::function<bool(const schedule::Schedule&)> unarmable;
  std::function<bool(const std::vector<Hit>&)> dead;  // whether nodes failed so early that the oracle cannot decide
  int runs = 0;
  std::vector<schedule::Schedule> made;

  Result<schedule::RunResult> run(const schedule::Schedule& schedule) override {
    const int number = runs++;
    made.push_back(schedule);
    for (const schedule::Fault& fault : schedule.faults)
      for (const schedule::Condition& c : fault.when)
        if (unknown.contains(c.function))
          return fail(ErrorKind::input, fmt::format("no function '{}' in './node'", c.function));
    if (unarmable && unarmable(schedule)) return fail(ErrorKind::environment, "the kernel refuses these probes");
    if (acts_of) acts_ = acts_of(number);
    schedule_ = &schedule;
    states_.assign(schedule.faults.size(), {});
    hits_.clear();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      states_[i].outcome.id = schedule.faults[i].id;
      states_[i].outcome.conditions.resize(schedule.faults[i].when.size());
      states_[i].open = schedule.faults[i].after.empty();
      states_[i].since = 0;
    }
    Dump trace;
    for (std::size_t i = 0; i < acts_.size(); ++i) {
      time_passes(acts_[i].t);
      if (traced) {
        if (!acts_[i].function.empty()) {
          if (acts_[i].offset != 0) {
            happens(static_cast<int>(i));
            continue;
          }
          trace::Event& e = trace.event(acts_[i].t, trace::EventType::af, acts_[i].node);
          e.function = trace.intern(acts_[i].function);
        } else if (acts_[i].changes) {
          trace.sys(acts_[i].t, acts_[i].node, acts_[i].syscall, acts_[i].path);
        }
      }
      happens(static_cast<int>(i));
    }
    time_passes(1000);
    if (also) also(hits_, trace);
    trace.ends(60);
    schedule::RunResult result;
    result.oracle = dead && dead(hits_) ? schedule::OracleAnswer::unknown : hit_if(bug_(hits_, number));
    result.seconds = 20;
    if (messages) result.messages_seen = messages(hits_);
    result.trace = trace.take();
    for (const State& state : states_) result.faults.push_back(state.outcome);
    schedule::judge(result, schedule, "scripted");
    return result;
  }

 private:
  struct State {
    schedule::FaultOutcome outcome;
    bool open = false;
    std::size_t met = 0;     // number of conditions that are met
    std::uint64_t seen = 0;  // how often the current condition has matched
    double since = 0;        // time at which the previous condition was met
  };

  static bool matches(const schedule::CallMatch& call, const Act& act) {
    // If the call is expected to have two paths, the act's path is the second one, which the call creates.
    const std::optional<std::string>& path = call.path2 ? call.path2 : call.path;
    return glob_match(call.syscall, act.syscall) && (!path || glob_match(*path, act.path));
  }

  bool done(std::size_t i) const { return states_[i].outcome.fired || states_[i].outcome.withdrawn; }

  void fire(std::size_t i, double t, int act) {
    const schedule::Fault& fault = schedule_->faults[i];
    states_[i].outcome.fired = true;
    states_[i].outcome.fired_ns = static_cast<std::int64_t>(t * 1e9);
    hits_.push_back({&fault, t, act});
    for (std::size_t k = 0; k < states_.size(); ++k) {
      const schedule::Fault& other = schedule_->faults[k];
      if (k != i && !fault.group.empty() && other.group == fault.group && !done(k)) states_[k].outcome.withdrawn = true;
      if (std::find(other.after.begin(), other.after.end(), fault.id) == other.after.end() || states_[k].open) continue;
      states_[k].open = std::all_of(other.after.begin(), other.after.end(), [&](const std::string& id) {
        for (const State& state : states_)
          if (state.outcome.id == id) return state.outcome.fired;
        return false;
      });
      states_[k].since = t;
    }
  }

  void arm(std::size_t i, double t, int act) {
    const schedule::Fault& fault = schedule_->faults[i];
    states_[i].outcome.armed = true;
    if (fault.kind != schedule::FaultKind::syscall && !fault.before) fire(i, t, act);
  }

  void meet(std::size_t i, double t, int act) {
    State& state = states_[i];
    state.outcome.conditions[state.met].met = true;
    state.outcome.conditions[state.met].met_ns = static_cast<std::int64_t>(t * 1e9);
    ++state.met;
    state.seen = 0;
    state.since = t;
    if (state.met == schedule_->faults[i].when.size()) arm(i, t, act);
  }

  // Marks the conditions as met that become true because the time is now `t`.
  void time_passes(double t) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < states_.size(); ++i) {
        State& state = states_[i];
        const schedule::Fault& fault = schedule_->faults[i];
        if (done(i) || !state.open || state.outcome.armed) continue;
        if (fault.when.empty() && (fault.kind == schedule::FaultKind::syscall || t >= 0)) {
          arm(i, std::max(0.0, state.since), -1);
          moved = true;
        } else if (!fault.when.empty() && fault.when[state.met].kind == schedule::ConditionKind::elapsed &&
                   state.since + static_cast<double>(fault.when[state.met].elapsed_ns) / 1e9 <= t) {
          meet(i, state.since + static_cast<double>(fault.when[state.met].elapsed_ns) / 1e9, -1);
          moved = true;
        }
      }
    }
  }

  void happens(int index) {
    const Act& act = acts_[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < states_.size(); ++i) {
      State& state = states_[i];
      const schedule::Fault& fault = schedule_->faults[i];
      if (done(i) || !state.open) continue;
      if (state.outcome.armed) {
        if (fault.node != act.node) continue;
        const schedule::CallMatch* call = fault.kind == schedule::FaultKind::syscall ? &fault.call
                                          : fault.before                             ? &*fault.before
                                                                                     : nullptr;
        const int wanted = fault.kind == schedule::FaultKind::syscall ? fault.count : fault.before_count;
        if (call != nullptr && !act.syscall.empty() && matches(*call, act) &&
            ++state.outcome.seen == static_cast<std::uint64_t>(wanted))
          fire(i, act.t, index);
        continue;
      }
      if (state.met >= fault.when.size()) continue;
      const schedule::Condition& c = fault.when[state.met];
      if ((c.node.empty() ? fault.node : c.node) != act.node) continue;
      const bool meant = c.kind == schedule::ConditionKind::function
                             ? !act.function.empty() && act.function == c.function && act.offset == c.offset.value_or(0)
                         : c.kind == schedule::ConditionKind::syscall ? !act.syscall.empty() && matches(c.call, act)
                                                                      : false;
      if (!meant) continue;
      state.outcome.conditions[state.met].seen = ++state.seen;
      if (state.seen == static_cast<std::uint64_t>(c.count)) meet(i, act.t, index);
    }
  }

  std::vector<Act> acts_;
  Bug bug_;
  const schedule::Schedule* schedule_ = nullptr;
  std::vector<State> states_;
  std::vector<Hit> hits_;
};

// Adds to the dump what the nodes do in such a script until the time `until`.
inline void record(Dump& dump, const std::vector<Act>& acts, double until) {
  for (const Act& act : acts) {
    if (act.t > until) continue;
    if (act.offset != 0) continue;
    if (!act.function.empty()) dump.event(act.t, trace::EventType::af, act.node).function = dump.intern(act.function);
    else if (act.changes) dump.sys(act.t, act.node, act.syscall, act.path);
  }
}

inline Diagnosis diagnosis_of(const config::Config& config, const Dump& dump, Runner& runner,
                              std::optional<profile::Profile> profile = {}, bool simplify = false,
                              CodeMap* code = nullptr) {
  Inputs inputs = inputs_of(config, {dump});
  inputs.simplify = simplify;
  inputs.code = code;
  inputs.profile = std::move(profile);
  Result<Diagnosis> d = diagnose::diagnose(inputs, runner, {});
  if (!d) throw std::runtime_error(d.error().message);
  return *std::move(d);
}

}  // namespace rose::diagnose::test
