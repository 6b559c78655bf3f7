#include "diagnose/extractor.h"

#include "diagnose/feedback.h"
#include "diagnose/surprise.h"
#include "diagnose/thresholds.h"

namespace rose::diagnose {
namespace {

constexpr std::int64_t kSoon = 10 * kSecond;           // a process that ends itself this soon after a failure reacts to it
constexpr std::int64_t kPromote = 30 * kSecond;

}  // namespace

void Extractor::explain_own_ends() {
  for (const std::size_t index : own_ends_) {
    Candidate& own = plan_.candidates[index];
    const Cause* cause = nullptr;
    for (const Cause& c : causes_) {
      if (c.kind == CauseKind::ended_itself || c.kind == CauseKind::planned) continue;
      const std::int64_t slack = c.kind == CauseKind::cut ? kHeartbeat : 0;
      if (c.start + slack <= own.first_ts) cause = &c;  // the latest before it
    }
    const Candidate* failure = nullptr;
    for (std::size_t i = 0; i < plan_.candidates.size(); ++i) {
      const Candidate& c = plan_.candidates[i];
      if (followers_.contains(i)) continue;  // what comes with a start or an error explains no death
      if (c.kind != FaultKind::syscall || c.node != own.node || c.profiled || c.ordinariness > 2) continue;
      if (c.first_ts > own.first_ts || c.last_ts < own.first_ts - kSoon) continue;
      if (failure == nullptr || c.ordinariness < failure->ordinariness) failure = &c;
    }
    own.symptom = cause != nullptr || failure != nullptr;
    own.own_end = true;
    if (failure != nullptr)
      own.why += fmt::format("; it follows {}({}) failing with {}", failure->syscall, failure->path, failure->error);
    else if (cause != nullptr)
      own.why += fmt::format("; {} explains it", cause->words);
    else
      own.why += "; nothing in the dump explains it";
  }
}

void Extractor::rank() {
  const auto order = [&](const Candidate& c) {
    int kind = 0;
    switch (c.kind) {
      case FaultKind::crash:
      case FaultKind::pause: kind = c.own_end || c.blocked || usual_.contains(c.fault.id) ? 1 : 0; break;
      case FaultKind::partition:
      case FaultKind::network:
      case FaultKind::clock:
      case FaultKind::descriptors:
      case FaultKind::memory:
      case FaultKind::cpu:
      case FaultKind::disk_full:
      case FaultKind::disk_slow: kind = 2; break;
      case FaultKind::block:
      case FaultKind::exception:
      case FaultKind::syscall: kind = 3; break;
    }
    const bool call = c.kind == FaultKind::syscall || c.kind == FaultKind::exception;
    if (!call && c.said < kHalfSaid) kind = 4;  // a guess of what logs do not say
    return std::tuple(c.symptom ? 1 : 0, kind, call && c.profiled ? 1 : 0, call ? -c.said : 0, call ? c.ordinariness : 0, c.first_ts);
  };
  std::vector<std::pair<decltype(order(plan_.candidates[0])), std::size_t>> sorted;
  sorted.reserve(plan_.candidates.size());
  for (std::size_t i = 0; i < plan_.candidates.size(); ++i) sorted.emplace_back(order(plan_.candidates[i]), i);
  std::sort(sorted.begin(), sorted.end());
  std::vector<Candidate> ranked;
  ranked.reserve(sorted.size());
  for (const auto& [key, index] : sorted) ranked.push_back(std::move(plan_.candidates[index]));
  plan_.candidates = std::move(ranked);
  promote();
  int rank = 0;
  for (Candidate& candidate : plan_.candidates) candidate.rank = ++rank;
}

void Extractor::promote() {
  const auto first_call = std::find_if(plan_.candidates.begin(), plan_.candidates.end(), [](const Candidate& c) {
    return c.kind == FaultKind::syscall && !c.symptom;
  });
  if (first_call == plan_.candidates.begin() || first_call == plan_.candidates.end()) return;
  auto best = plan_.candidates.end();
  for (auto it = first_call; it != plan_.candidates.end() && !it->symptom; ++it) {
    const int err = it->fault.error;
    if (it->profiled || it->said < kHalfSaid || !strict_resource_error(err)) continue;
    const bool before_all = std::all_of(plan_.candidates.begin(), first_call,
                                        [&](const Candidate& c) { return it->first_ts < c.first_ts; });
    const bool near = std::any_of(plan_.candidates.begin(), first_call, [&](const Candidate& c) {
      const bool same = c.node == it->node ||
                        std::find(c.fault.peers.begin(), c.fault.peers.end(), it->node) != c.fault.peers.end();
      return same && c.first_ts - it->first_ts <= kPromote;
    });
    if (before_all && near && (best == plan_.candidates.end() || it->first_ts < best->first_ts)) best = it;
  }
  if (best == plan_.candidates.end()) return;
  best->why += "; it came before all other faults";
  best->first = true;
  std::rotate(plan_.candidates.begin(), best, best + 1);
}

// The paper's order as odds.
void Extractor::weigh() {
  double all = 0;
  for (Candidate& c : plan_.candidates) {
    switch (c.kind) {
      case FaultKind::crash:
      case FaultKind::pause: c.weight = c.own_end || c.blocked ? kOddsOwnEnd : kOddsProcess; break;
      case FaultKind::partition:
      case FaultKind::network: c.weight = kOddsNetwork; break;
      case FaultKind::clock: c.weight = c.stepped ? kOddsClockStep : kOddsClock; break;
      case FaultKind::descriptors:
      case FaultKind::memory:
      case FaultKind::cpu:
      case FaultKind::disk_full:
      case FaultKind::disk_slow: c.weight = kOddsProcess; break;
      case FaultKind::block:
      case FaultKind::exception:
      case FaultKind::syscall:
        c.weight = c.ordinariness == 0 ? kOddsResource : c.ordinariness == 1 ? kOddsCall : c.ordinariness == 2 ? kOddsEveryday : kOddsNoise;
        break;
    }
    if (c.profiled) c.weight *= kOddsProfiled;
    if (const auto usual = usual_.find(c.fault.id); usual != usual_.end()) c.weight *= usual->second;
    if (c.symptom) c.weight *= kOddsSymptom;
    if (c.first) c.weight *= kOddsFirst;
    c.weight *= c.said;
  }
  if (!inputs_.without.contains("nearness")) weigh_nearness();
  for (const Candidate& c : plan_.candidates) all += c.weight;
  for (Candidate& c : plan_.candidates) c.weight /= all;
}

// A dump is written when something has gone wrong: what is over long before that, counted in what has happened since, is
// hardly why. The last few are all near; so are those that came in one incident with the last.
void Extractor::weigh_nearness() {
  std::vector<std::int64_t> times;
  for (const Candidate& c : plan_.candidates)
    if (!c.symptom && c.ordinariness < 3) times.push_back(c.last_ts);
  std::sort(times.begin(), times.end());
  std::vector<double> incidents(times.size() + 1);  // that begin there or later: what is further apart than a workload lasts are two
  for (std::size_t i = times.size(); i-- > 1;) incidents[i] = incidents[i + 1] + (times[i] - times[i - 1] > longest_ns_ ? 1 : 0);
  incidents[0] = incidents.size() > 1 ? incidents[1] + 1 : 0;
  for (Candidate& c : plan_.candidates) {
    const auto at = std::upper_bound(times.begin(), times.end(), c.last_ts) - times.begin();
    const double far = std::max(static_cast<double>(times.size() - static_cast<std::size_t>(at)) / kNearFew, incidents[static_cast<std::size_t>(at)] / kNearIncidents);
    if (far > 1) c.weight /= far;
  }
}

// Whatever may be a consequence tells, when it comes back, that a run was on the right way.
void Extractor::observe() {
  constexpr std::size_t kMost = 256;
  for (const Observable& one : inputs_.log_observables)
    if (plan_.observables.size() < kMost) plan_.observables.push_back(one);
  if (inputs_.said.size() == inputs_.traces.size() && !inputs_.said.empty()) return;  // candidates of logs were not seen to happen
  for (const Candidate& c : plan_.candidates) {
    if (plan_.observables.size() >= kMost) break;
    if (c.kind == FaultKind::crash && c.own_end)
      plan_.observables.push_back({sign_of_end(c.node), c.node, c.first_ts});
    else if (c.kind == FaultKind::syscall && c.ordinariness <= 1)
      plan_.observables.push_back({sign_of_call(c.node, c.syscall, c.error), c.node, c.first_ts});
  }
}

void Extractor::finish() {
  for (const std::string& one : inputs_.log_notes) note(one);
  weigh();
  observe();
  for (const int node : came_back_)
    note(fmt::format("{} came back after its crash, but its [[node]] has no `restart`: in the test deployment it will stay down "
                     "unless the workload starts it", name(node)));
  std::uint64_t total = 0;
  for (auto& [why, events] : discarded_) {
    plan_.discarded.push_back({why, events});
    total += events;
  }
  std::stable_sort(plan_.discarded.begin(), plan_.discarded.end(),
                   [](const Discarded& a, const Discarded& b) { return a.events > b.events; });
  plan_.discarded_share = plan_.failures == 0 ? 0 : static_cast<double>(total) / static_cast<double>(plan_.failures);
}

}  // namespace rose::diagnose
