// Level 1: the real limits that explain the evidence. A call that failed with EMFILE is only one of the calls that a
// node without free descriptors cannot make. Likewise, a full disk, a lack of memory and a slow disk affect more than
// the call or the process that the evidence shows.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <utility>

#include "base/units.h"
#include "diagnose/move.h"
#include "diagnose/simplify.h"
#include "evidence/forms.h"

namespace rose::diagnose {
namespace {

// A running node has more descriptors open, so it gets no further descriptor, but it can still be restarted.
constexpr std::int64_t kFewDescriptors = 16;
// For a node with fewer than 16 descriptors open. With so low a limit, programs that the node starts fail as well.
constexpr std::int64_t kNoDescriptors = 3;
constexpr std::int64_t kLittleMemory = 1 << 20;  // bytes; every node uses more, so its next page exceeds the limit
// Duration of a limit that kills several helpers. A node that replaces its helper does so within a second or so, and a
// busy helper soon needs another page.
constexpr std::int64_t kSeveralHelpers = 3 * kSecond;
constexpr std::int64_t kRequestsOfSync = 5;  // requests to the disk during one blocking call (estimate)
constexpr std::int64_t kLeastDiskDelay = 10'000'000;
constexpr std::int64_t kMostDiskDelay = 10 * kSecond;

// The kind of limit whose exhaustion the error indicates; FaultKind::syscall: none.
FaultKind limit_behind(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE: return FaultKind::descriptors;
    case ENOSPC:
    case EDQUOT: return FaultKind::disk_full;
    default: return FaultKind::syscall;
  }
}

// The folder that contains the files of all these calls, according to their path patterns: "data" for "*/data/log.*";
// "" if they differ. If a separate disk is mounted there, that disk is filled instead of the node's.
std::string common_folder(const std::vector<const Candidate*>& calls) {
  std::string folder;
  for (const Candidate* c : calls) {
    if (!c->path.starts_with("*/")) return {};
    const std::size_t slash = c->path.find('/', 2);
    if (slash == std::string::npos) return {};
    const std::string here = c->path.substr(2, slash - 2);
    if (here.empty() || here.find('*') != std::string::npos || (!folder.empty() && here != folder)) return {};
    folder = here;
  }
  return folder;
}

class LimitTrials {
 public:
  LimitTrials(const World& world, const Schedule* lead) : world_(world), lead_(lead) {
    limit_ns_ = longest_workload(*world.config);
  }

  std::vector<Trial> build() {
    // The failed calls of one node that indicate the same limit are explained together.
    std::map<std::pair<std::string, FaultKind>, std::vector<const Candidate*>> by_resource;
    for (const Candidate& c : world_.plan.candidates) {
      if (lead_ != nullptr ? lead_->find(c.fault.id) == nullptr : c.symptom || c.profiled) continue;
      if (c.kind == FaultKind::syscall && limit_behind(c.fault.error) != FaultKind::syscall)
        by_resource[{c.node, limit_behind(c.fault.error)}].push_back(&c);
      if (c.kind == FaultKind::crash && c.out_of_memory) out_of_memory(c);
      if (c.kind == FaultKind::crash && c.own_end && c.fault.signal == SIGBUS) mapped_file(c);
      if (c.kind == FaultKind::pause && c.blocked) slow_disk(c);
    }
    for (auto& [resource, calls] : by_resource) {
      // If the evidence mentions some of the calls, leave out the assumed ones, because their times are unknown.
      if (std::any_of(calls.begin(), calls.end(), [](const Candidate* c) { return !c->assumed; }))
        std::erase_if(calls, [](const Candidate* c) { return c->assumed; });
      failed_calls(resource.second, calls);
    }
    return std::move(trials_);
  }

 private:
  // True if the machine of the runs can set such a limit on this node.
  [[nodiscard]] bool able(FaultKind kind, const std::string& name) const {
    const auto& nodes = world_.config->nodes;
    const auto node =
        std::find_if(nodes.begin(), nodes.end(), [&](const auto& other_node) { return other_node.name == name; });
    if (node == nodes.end() || !world_.inputs->limits.contains(kind)) return false;
    if (kind == FaultKind::descriptors) return node->user.empty() || node->user == "root";
    return !node->attach;
  }

  // True if the node is in a container. The paths of its calls are then not in the node's folder, and its disks are
  // those of its volumes.
  [[nodiscard]] bool in_container(const std::string& name) const {
    const auto& nodes = world_.config->nodes;
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const config::Node& node) { return node.name == name && node.container; });
  }

  // Adds a trial. If a lead is refined, the limit replaces the faults of the candidates `instead` in its schedule.
  void propose(Fault fault, double yield, std::string why, const std::vector<const Candidate*>& instead) {
    Trial t;
    if (lead_ != nullptr) {
      t.schedule = *lead_;
      for (const Candidate* c : instead) t.schedule = without(t.schedule, c->fault.id);
    }
    t.schedule.name = world_.config->name;
    t.schedule.faults.insert(t.schedule.faults.begin(), std::move(fault));
    t.yield = yield;
    t.why = std::move(why);
    trials_.push_back(std::move(t));
  }

  // The prior of a limit: `share` of the weight of the observation that it explains; fixed if a lead is refined.
  [[nodiscard]] double prior(double share, double weight) const {
    return lead_ != nullptr ? kLead * kShareLimitOfLead : share * weight;
  }

  Fault limit(FaultKind kind, const Candidate& c) const {
    Fault fault;
    fault.id = fmt::format("{}-{}", schedule::kind_name(kind), c.node);
    fault.kind = kind;
    fault.node = c.node;
    fault.when = when_observed(world_, c);
    return fault;
  }

  void failed_calls(FaultKind kind, const std::vector<const Candidate*>& calls) {
    const Candidate& first = **std::min_element(calls.begin(), calls.end(),
                                                [](const auto* a, const auto* b) { return a->first_ts < b->first_ts; });
    if (!able(kind, first.node)) return;
    double weight = 0;
    std::int64_t last = first.last_ts;
    for (const Candidate* c : calls) {
      weight += c->weight;
      last = std::max(last, c->last_ts);
    }
    Fault fault = limit(kind, first);
    if (kind == FaultKind::descriptors) fault.resource.limit = kFewDescriptors;
    // if this call is guessed, all are, because build() removes guessed calls if there are others
    const bool guessed = first.assumed;
    const double yield =
        prior((calls.size() > 1 ? kShareLimitOneCause : kShareLimit) * (guessed ? kShareGuessed : 1), weight);
    const std::string what =
        kind == FaultKind::descriptors ? "the node has no descriptors left" : "the node's disk is full";
    const std::string seen = calls.size() == 1 ? first.why
                             : guessed ? fmt::format("no message shows it, but {} of its calls could fail with {}",
                                                     calls.size(), first.error)
                                       : fmt::format("{} of its calls fail with {}", calls.size(), first.error);
    propose(fault, yield, fmt::format("{}, to the end of the run: {}", what, seen), calls);
    const bool one_folder = kind == FaultKind::disk_full && !in_container(first.node);
    const std::string folder = one_folder ? common_folder(calls) : "";
    if (!folder.empty()) {
      Fault there = fault;
      there.resource.folder = folder;
      propose(std::move(there), kNextStep * yield,
              fmt::format("{}, where its {} is, to the end of the run: {}", what, folder, seen), calls);
    }
    // If the time is unknown, also try later points of the workload, when there is data to lose.
    if (lead_ == nullptr && world_.plan.workload_ts == 0 && world_.workload_ns > 0) {
      const std::vector<std::int64_t> points = points_of_workload(world_.workload_ns);
      for (const std::size_t i : {0, 2}) {
        Fault later = fault;
        later.when = {elapsed(points[i])};
        propose(std::move(later), point_share(i) * yield,
                fmt::format("{}, from {} after the workload began: {}", what, format_duration(points[i]), seen), calls);
      }
    }
    if (kind == FaultKind::descriptors) {
      Fault none = fault;
      none.resource.limit = kNoDescriptors;
      propose(std::move(none), kNextStep * yield, fmt::format("{}, however few it has open: {}", what, seen), calls);
    }
    // The limit may have ended before the dump did, so also try the observed duration.
    fault.duration_ns = std::clamp(rounded(last - first.first_ts), kSecond, std::max(kSecond, limit_ns_ / 2));
    if (!folder.empty()) {
      Fault there = fault;
      there.resource.folder = folder;
      propose(std::move(there), kNextStep * kNextStep * yield,
              fmt::format("{}, where its {} is, as long as observed: {}", what, folder, seen), calls);
    }
    propose(std::move(fault), kNextStep * yield, fmt::format("{}, as long as observed: {}", what, seen), calls);
  }

  // A full disk that ended a process by SIGBUS: a program that writes to a file through a mapping gets this signal
  // instead of ENOSPC, at the first page for which there is no space.
  void mapped_file(const Candidate& c) {
    if (!able(FaultKind::disk_full, c.node)) return;
    Fault fault = limit(FaultKind::disk_full, c);
    const double yield = prior(kShareMapped, c.weight);
    propose(fault, kNextStep * yield, fmt::format("the node's disk is full, to the end of the run: {}", c.why), {&c});
    // The disk was full before the program needed the page, so fill it earlier.
    for (Condition& condition : fault.when)
      if (condition.kind == schedule::ConditionKind::elapsed) condition.elapsed_ns = rounded(condition.elapsed_ns / 2);
    propose(std::move(fault), yield,
            fmt::format("the node's disk is full, somewhat earlier and to the end of the run: {}", c.why), {&c});
  }

  // A memory limit for a process that the OOM killer ended. It reproduces such an end more exactly than a crash fault:
  // not the whole node ends, but only the process that needs a page.
  void out_of_memory(const Candidate& c) {
    if (!able(FaultKind::memory, c.node)) return;
    const double yield = prior(kShareLimit, c.weight);
    Fault fault = limit(FaultKind::memory, c);
    fault.resource.limit = kLittleMemory;
    if (c.fault.scope == schedule::Scope::others) {
      // Only a helper ended: the main process continued and may soon start another helper. Therefore the limit ends as
      // soon as the kernel has killed one process, however late that process needs its next page.
      Condition killed;
      killed.kind = ConditionKind::process_state;
      killed.state = std::string(schedule::kOutOfMemory);
      fault.until = {killed};
      propose(fault, yield, fmt::format("the kernel kills a helper for lack of memory: {}", c.why), {&c});
      fault.until.clear();
      fault.duration_ns = kSeveralHelpers;
      propose(std::move(fault), kNextStep * yield,
              fmt::format("the kernel kills helpers for lack of memory, one after the other: {}", c.why), {&c});
      return;
    }
    Condition crashed;
    crashed.kind = ConditionKind::process_state;
    crashed.state = "crashed";
    fault.until = {crashed};
    propose(std::move(fault), yield, fmt::format("the kernel kills the node for lack of memory: {}", c.why), {&c});
  }

  // A slow disk for a process that was blocked: other processes of the node that use the disk wait as well, and the
  // rest continues.
  void slow_disk(const Candidate& c) {
    if (!able(FaultKind::disk_slow, c.node)) return;
    Fault fault = limit(FaultKind::disk_slow, c);
    fault.resource.delay_ns =
        std::clamp(rounded(c.fault.duration_ns / kRequestsOfSync), kLeastDiskDelay, kMostDiskDelay);
    fault.duration_ns = std::clamp(c.fault.duration_ns, kSecond, std::max(kSecond, limit_ns_ / 2));
    propose(std::move(fault), prior(kShareLimit, c.weight), fmt::format("the node's disk is slow: {}", c.why), {&c});
  }

  const World& world_;
  const Schedule* lead_;       // the schedule to refine; nullptr: none
  std::int64_t limit_ns_ = 0;  // longest duration of a workload
  std::vector<Trial> trials_;
};

}  // namespace

std::vector<Trial> limit_trials(const World& world, const Schedule* lead) {
  return world.uses("limits") ? LimitTrials(world, lead).build() : std::vector<Trial>();
}

}  // namespace rose::diagnose
