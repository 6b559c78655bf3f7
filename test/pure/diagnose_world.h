// A world for the search that needs neither root nor processes nor a clock: dumps made by hand, a deployment, and a
// cluster on which a function of the schedule decides whether the bug occurs.
#pragma once

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "evidence/given.h"
#include "kernel/syscalls.h"

namespace rose::diagnose::test {

inline constexpr double kHour = 3600;  // in seconds
// time at which the workload begins, unless stated otherwise
inline constexpr std::int64_t kBase = 1'763'755'200'000'000'000;

inline std::int64_t at(double seconds) { return kBase + static_cast<std::int64_t>(seconds * 1e9); }

// A dump that is being made. Its times are in seconds since kBase.
class Dump {
 public:
  explicit Dump(bool knows_workload = true) {
    if (knows_workload) trace_.meta.workload_ts = kBase;
  }

  trace::Event& event(double t, trace::EventType type, std::string_view node) {
    trace::Event& e = trace_.events.emplace_back();
    e.ts_ns = at(t);
    e.type = type;
    if (!node.empty()) e.node = trace_.strings.intern(node);
    return e;
  }
  trace::Event& scf(double t, std::string_view node, std::string_view syscall, int err, std::string_view path = {},
                    std::string_view peer = {}) {
    trace::Event& e = event(t, trace::EventType::scf, node);
    e.syscall = static_cast<std::int16_t>(kernel::find_syscall(syscall)->number);
    e.err = static_cast<std::int16_t>(err);
    if (!path.empty()) e.path = trace_.strings.intern(path);
    if (!peer.empty()) e.peer = trace_.strings.intern(peer);
    e.pid = e.tid = 41;
    return e;
  }
  trace::Event& sys(double t, std::string_view node, std::string_view syscall, std::string_view path) {
    trace::Event& e = scf(t, node, syscall, 0, path);
    e.type = trace::EventType::sys;
    return e;
  }
  // A silence from `from` to `to`, recorded by the tracer of `node`.
  trace::Event& silence(double from, double to, std::string_view node, std::string_view src, std::string_view dst) {
    trace::Event& e = event(to, trace::EventType::nd, node);
    e.src = trace_.strings.intern(src);
    e.dst = trace_.strings.intern(dst);
    e.duration_ms = static_cast<std::int32_t>((to - from) * 1000 + 0.5);
    e.packets = 100;
    return e;
  }
  trace::Event& crashed(double t, std::string_view node, int signal = SIGKILL, std::uint8_t flags = trace::kMain) {
    trace::Event& e = event(t, trace::EventType::ps, node);
    e.state = trace::ProcessState::crashed;
    e.signal = static_cast<std::uint8_t>(signal);
    e.flags = flags;
    e.pid = 41;
    return e;
  }
  trace::Event& exited(double t, std::string_view node, int code, std::uint8_t flags = trace::kMain) {
    trace::Event& e = event(t, trace::EventType::ps, node);
    e.state = trace::ProcessState::exited;
    e.exit_code = code;
    e.flags = flags;
    e.pid = 41;
    return e;
  }
  trace::Event& started(double t, std::string_view node, std::uint8_t flags = trace::kMain) {
    trace::Event& e = event(t, trace::EventType::ps, node);
    e.state = trace::ProcessState::started;
    e.flags = flags;
    e.pid = 42;
    return e;
  }
  trace::Event& paused(double from, double to, std::string_view node, std::uint8_t flags = trace::kMain) {
    trace::Event& e = event(to, trace::EventType::ps, node);
    e.state = trace::ProcessState::paused;
    e.duration_ms = static_cast<std::int32_t>((to - from) * 1000 + 0.5);
    e.flags = flags;
    e.pid = 41;
    return e;
  }
  // Adds the silences of both directions between `node` and each of `peers`. Every node records the silences of packets
  // that it should receive.
  void cut(double from, double to, int node, const std::vector<int>& peers) {
    for (const int peer : peers) {
      silence(from, to, fmt::format("n{}", node), fmt::format("10.77.0.{}", peer), fmt::format("10.77.0.{}", node));
      silence(from + 0.1, to + 0.2, fmt::format("n{}", peer), fmt::format("10.77.0.{}", node),
              fmt::format("10.77.0.{}", peer));
    }
  }
  void ends(double t) { trace_.meta.end_ns = at(t); }

  trace::StringId intern(std::string_view text) { return trace_.strings.intern(text); }
  trace::Meta& meta() { return trace_.meta; }
  trace::Trace take() const {
    trace::Trace copy = trace_;
    trace::sort_by_time(copy);
    return copy;
  }

 private:
  trace::Trace trace_;
};

// The nodes n1, n2, ... with the addresses 10.77.0.1, 10.77.0.2, ..., and a workload that takes at most 60 s.
inline config::Config deployment(int nodes = 3) {
  config::Config config;
  config.name = "test";
  for (int i = 1; i <= nodes; ++i) {
    config::Node node;
    node.name = fmt::format("n{}", i);
    node.ip = fmt::format("10.77.0.{}", i);
    node.command = {"./node"};
    node.restart = config::Restart{};
    config.nodes.push_back(node);
  }
  config.workload = config::Workload{{"./workload"}};
  config.oracle = config::Oracle{{"./oracle"}};
  return config;
}

inline Inputs inputs_of(const config::Config& config, const std::vector<Dump>& dumps) {
  Inputs inputs;
  inputs.config = &config;
  for (const Dump& dump : dumps) inputs.sources.push_back(evidence::of_dump(dump.take()));
  return inputs;
}

inline Plan plan_of(const config::Config& config, const Dump& dump, std::optional<profile::Profile> profile = {}) {
  Inputs inputs = inputs_of(config, {dump});
  inputs.profile = std::move(profile);
  Result<Plan> plan = make_plan(inputs);
  if (!plan) throw std::runtime_error(plan.error().message);
  return *std::move(plan);
}

// The profile learnt from `runs` runs without faults.
inline profile::Profile profile_of(const Dump& dump, int runs = 1, double seconds = 10) {
  profile::Profile profile;
  for (int i = 0; i < runs; ++i) {
    profile::RunCounts counts;
    counts.seconds = seconds;
    profile::learn(profile, dump.take(), counts);
  }
  return profile;
}

inline std::uint64_t accounted(const Plan& plan) {
  std::uint64_t total = 0;
  for (const Candidate& candidate : plan.candidates) total += candidate.count;
  for (const Discarded& discarded : plan.discarded) total += discarded.events;
  return total;
}

inline std::uint64_t discarded(const Plan& plan, std::string_view part) {
  std::uint64_t total = 0;
  for (const Discarded& d : plan.discarded)
    if (d.why.find(part) != std::string::npos) total += d.events;
  return total;
}

// The result that a run on the scripted cluster is to have.
struct Answer {
  schedule::OracleAnswer oracle = schedule::OracleAnswer::miss;
  std::vector<std::string> unfired;  // ids of the faults that do not fire
  trace::Trace trace;
  std::string note = "scripted";
  std::string doubt{};              // why the run is inconclusive; empty if it is not
  std::vector<std::string> idle{};  // ids of the faults that fire but have no effect
};

class Cluster final : public Runner {
 public:
  using Rule = std::function<Answer(const schedule::Schedule&, int run)>;
  explicit Cluster(Rule rule) : rule_(std::move(rule)) {}

  Result<schedule::RunResult> run(const schedule::Schedule& schedule) override {
    if (fails_at && *fails_at == runs) return fail(ErrorKind::cancelled, "interrupted");
    Answer answer = rule_(schedule, runs++);
    made.push_back(schedule::fingerprint(schedule));
    const auto ahead = std::find(made_ahead_.begin(), made_ahead_.end(), made.back());
    if (ahead != made_ahead_.end()) {
      made_ahead_.erase(ahead);
    } else {
      ++rounds;
      made_ahead_.insert(made_ahead_.end(), expected_.begin(), expected_.end());
    }
    expected_.clear();
    waits.push_back(wait_at_most_ns_);
    schedule::RunResult result;
    result.oracle = answer.oracle;
    result.trace = std::move(answer.trace);
    result.seconds = seconds;
    if (workload_of) result.workload_end_ns = workload_of(schedule);
    for (const schedule::Fault& fault : schedule.faults) {
      schedule::FaultOutcome outcome;
      outcome.id = fault.id;
      outcome.fired = std::find(answer.unfired.begin(), answer.unfired.end(), fault.id) == answer.unfired.end();
      outcome.armed = outcome.fired;
      if (std::find(answer.idle.begin(), answer.idle.end(), fault.id) != answer.idle.end())
        outcome.no_effect = "no packet was stopped";
      result.faults.push_back(outcome);
    }
    result.doubt = answer.doubt;
    schedule::judge(result, schedule, answer.note);
    return result;
  }

  void wait_at_most(std::int64_t workload_ns) override { wait_at_most_ns_ = workload_ns; }
  [[nodiscard]] int room() const override { return free_places; }
  void expect(std::vector<schedule::Schedule> next) override {
    expected_.clear();
    std::vector<std::string> there = made_ahead_;
    for (const schedule::Schedule& schedule : next) {
      const std::string key = schedule::fingerprint(schedule);
      const auto known = std::find(there.begin(), there.end(), key);
      if (known != there.end()) there.erase(known);
      else if (static_cast<int>(expected_.size()) < free_places) expected_.push_back(key);
    }
  }

  int runs = 0;
  int free_places = 0;  // number of expected runs that are made beside each requested one
  int rounds = 0;       // number of requests for which no run had been made ahead
  double seconds = 20;
  std::function<std::int64_t(const schedule::Schedule&)> workload_of;  // when the workload ends, in ns since its start
  std::optional<int> fails_at;
  std::vector<std::string> made;    // fingerprints of the schedules that were run, in their order
  std::vector<std::int64_t> waits;  // for each of these runs: how long its workload may take; 0: no limit

 private:
  Rule rule_;
  std::int64_t wait_at_most_ns_ = 0;
  std::vector<std::string> expected_;    // fingerprints
  std::vector<std::string> made_ahead_;  // fingerprints, of runs that were not requested yet
};

inline schedule::OracleAnswer hit_if(bool hit) {
  return hit ? schedule::OracleAnswer::hit : schedule::OracleAnswer::miss;
}

// The schedule's first fault of this kind on this node, or nullptr.
inline const schedule::Fault* fault_of(const schedule::Schedule& schedule, schedule::FaultKind kind,
                                       std::string_view node = {}) {
  for (const schedule::Fault& fault : schedule.faults)
    if (fault.kind == kind && (node.empty() || fault.node == node)) return &fault;
  return nullptr;
}

}  // namespace rose::diagnose::test
