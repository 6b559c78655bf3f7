#include "diagnose/extract/rank.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "diagnose/feedback.h"
#include "diagnose/thresholds.h"
#include "diagnose/words.h"
#include "evidence/surprise.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

// The latest cause before the process `own` ended, except planned stops, ends that processes caused themselves, and
// guesses that no log reports clearly; nullptr if there is none.
const Cause* cause_before(const Candidate& own, const Causes& causes) {
  const Cause* cause = nullptr;
  for (const Cause& c : causes.list()) {
    if (c.kind == CauseKind::ended_itself || c.kind == CauseKind::planned || c.plainness < kLeastReported) continue;
    const std::int64_t slack = c.kind == CauseKind::partition ? kHeartbeat : 0;
    if (c.start + slack <= own.first_ts) cause = &c;
  }
  return cause;
}

// The most serious failed call of the node within kEndsAfterFailure before the process ended; if several are equally
// serious, the last. nullptr if there is none.
Candidate* failure_before(const Candidate& own, std::vector<Candidate>& calls) {
  Candidate* failure = nullptr;
  const auto order = [&](const Candidate& c) { return std::pair(c.ordinariness, -std::min(c.last_ts, own.first_ts)); };
  for (Candidate& c : calls) {
    if (c.follows) continue;  // a failure that always follows a start or another error explains no end
    if (c.foreign && !own.foreign) continue;
    if (c.node != own.node || c.profiled || c.ordinariness > 2) continue;
    if (c.first_ts > own.first_ts || c.last_ts < own.first_ts - kEndsAfterFailure) continue;
    if (failure == nullptr || order(c) < order(*failure)) failure = &c;
  }
  return failure;
}

bool is_call(const Candidate& c) { return c.kind == FaultKind::syscall || c.kind == FaultKind::exception; }

int order_of_kind(const Candidate& c) {
  if (!is_call(c) && c.plainness < kLeastReported) return 4;  // a guess that no log reports
  switch (c.kind) {
    case FaultKind::crash:
    case FaultKind::pause: return c.own_end || c.blocked || c.usual < 1 ? 1 : 0;
    case FaultKind::partition:
    case FaultKind::network:
    case FaultKind::clock:
    case FaultKind::descriptors:
    case FaultKind::memory:
    case FaultKind::cpu:
    case FaultKind::disk_full:
    case FaultKind::disk_slow: return 2;
    case FaultKind::block:
    case FaultKind::exception:
    case FaultKind::syscall: return 3;
  }
  return 0;
}

using Order = std::tuple<int, int, int, double, int, int, std::int64_t>;

Order order_of(const Candidate& c) {
  const bool call = is_call(c);
  return {c.symptom   ? 2
          : c.foreign ? 1
                      : 0,
          order_of_kind(c),
          call && c.profiled ? 1 : 0,
          call ? -c.plainness : 0,
          c.fatal ? 0 : 1,
          call ? c.ordinariness : 0,
          c.first_ts};
}

// Moves the first resource error that precedes all process and network faults to the front, if one of these faults on
// the same node follows it within kFirstErrorNear: a broken disk may be the reason why the node was killed or fell
// silent. This departs from the paper's order, because a symptom never precedes its cause.
std::vector<Candidate> promoted(std::vector<Candidate> candidates) {
  const auto first_call = std::find_if(candidates.begin(), candidates.end(),
                                       [](const Candidate& c) { return c.kind == FaultKind::syscall && !c.symptom; });
  if (first_call == candidates.begin() || first_call == candidates.end()) return candidates;
  auto best = candidates.end();
  for (auto it = first_call; it != candidates.end() && !it->symptom; ++it) {
    const int err = it->fault.error;
    if (it->profiled || it->foreign || it->plainness < kLeastReported || !kernel::resource_error(err)) continue;
    const bool before_all =
        std::all_of(candidates.begin(), first_call, [&](const Candidate& c) { return it->first_ts < c.first_ts; });
    const bool near = std::any_of(candidates.begin(), first_call, [&](const Candidate& c) {
      const bool same =
          c.node == it->node || std::find(c.fault.peers.begin(), c.fault.peers.end(), it->node) != c.fault.peers.end();
      return same && c.first_ts - it->first_ts <= kFirstErrorNear;
    });
    if (before_all && near && (best == candidates.end() || it->first_ts < best->first_ts)) best = it;
  }
  if (best == candidates.end()) return candidates;
  best->why += "; it came before all other faults";
  best->first = true;
  std::rotate(candidates.begin(), best, best + 1);
  return candidates;
}

// Resets the properties that come from the parts of the method in `without`.
void leave_out(Candidate& c, const std::set<std::string>& without) {
  if (without.contains("symptoms")) c.symptom = c.perhaps_symptom = false;
  if (without.contains("usual")) c.usual = 1;
  if (without.contains("programs")) c.foreign = false;
  if (without.contains("fatal")) c.fatal = false;
  if (without.contains("rarer")) c.profiled = false;
  if (without.contains("plainness")) c.plainness = 1;
  if (without.contains("own-ends")) c.own_end = c.blocked = false;
  if (without.contains("errors") && c.kind == FaultKind::syscall) c.ordinariness = 1;
}

}  // namespace

std::vector<Candidate> explain_own_ends(std::vector<Candidate> processes, const Causes& causes,
                                        std::vector<Candidate>& calls) {
  for (Candidate& own : processes) {
    if (!own.own_end) continue;
    const Cause* cause = cause_before(own, causes);
    Candidate* failure = failure_before(own, calls);
    own.symptom = cause != nullptr || failure != nullptr;
    if (failure != nullptr)
      own.why += fmt::format("; it follows {}({}) failing with {}", failure->syscall, failure->path, failure->error);
    else if (cause != nullptr) own.why += fmt::format("; {} explains it", cause->words);
    else own.why += "; nothing in the dump explains it";
    if (failure != nullptr && !own.partly && failure->ordinariness <= 1 &&
        own.first_ts - failure->last_ts <= kEndsAfterCall) {
      failure->fatal = true;
      failure->why +=
          fmt::format("; {}{} ended itself right after it", failure->usual < 1 ? "the last time " : "", own.node);
      failure->usual = 1;  // this failure is not usual, even if earlier ones are
    }
  }
  return processes;
}

std::vector<Candidate> in_order(std::vector<std::vector<Candidate>> kinds, const std::set<std::string>& without) {
  std::vector<Candidate*> all;
  for (std::vector<Candidate>& kind : kinds)
    for (Candidate& c : kind) {
      leave_out(c, without);
      all.push_back(&c);
    }
  std::vector<std::pair<Order, std::size_t>> sorted;
  sorted.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) sorted.emplace_back(order_of(*all[i]), i);
  std::sort(sorted.begin(), sorted.end());
  std::vector<Candidate> candidates;
  candidates.reserve(sorted.size());
  for (const auto& [key, index] : sorted) candidates.push_back(std::move(*all[index]));
  return without.contains("first-error") ? std::move(candidates) : promoted(std::move(candidates));
}

std::vector<Observable> observables(const Inputs& inputs, const std::vector<Candidate>& candidates) {
  constexpr std::size_t kMost = 256;
  std::vector<Observable> list;
  for (const Observable& observable : inputs.log_observables)
    if (list.size() < kMost) list.push_back(observable);
  if (!inputs.recorded()) return list;  // no tracer recorded these candidates, so runs cannot be compared with them
  for (const Candidate& c : candidates) {
    if (list.size() >= kMost) break;
    if (c.foreign) continue;  // runs of the test deployment have no such process
    if (c.kind == FaultKind::crash && c.own_end) list.push_back({sign_of_end(c.node), c.node, c.first_ts});
    else if (c.kind == FaultKind::syscall && c.ordinariness <= 1)
      list.push_back({sign_of_call(c.node, c.syscall, c.error), c.node, c.first_ts});
  }
  return list;
}

}  // namespace rose::diagnose
