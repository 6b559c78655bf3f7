// Trials on other replicas. If several nodes behave alike, it is unknown which of them a production host corresponds
// to, and the faults of the host were assigned to one of them. If the bug needs the leader, or the node that serves
// clients, another of these nodes may be right.
#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/move.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostRotations = 4;    // variants of one schedule
constexpr std::size_t kMostOnReplicas = 64;  // at most this many trials get variants, the most likely ones

using Names = std::vector<std::string>;

// Replaces a name in the list by the name that is `by` places later, cyclically.
void rotate(const Names& replicas, std::size_t by, std::string& name) {
  if (const auto at = std::find(replicas.begin(), replicas.end(), name); at != replicas.end())
    name = replicas[(static_cast<std::size_t>(at - replicas.begin()) + by) % replicas.size()];
}

void rotate(const Names& replicas, std::size_t by, Fault& fault) {
  rotate(replicas, by, fault.node);
  for (Names* names : {&fault.side, &fault.peers})
    for (std::string& name : *names) rotate(replicas, by, name);
  for (std::vector<Condition>* conditions : {&fault.when, &fault.until})
    for (Condition& condition : *conditions) rotate(replicas, by, condition.node);
}

}  // namespace

std::vector<Schedule> on_replicas(const World& world, const Schedule& schedule) {
  std::vector<Schedule> rotated;
  if (!world.uses("replicas")) return rotated;
  std::set<std::string> known{schedule::fingerprint(schedule)};
  for (const Names& replicas : world.plan.replicas)
    for (std::size_t by = 1; by < replicas.size() && rotated.size() < kMostRotations; ++by) {
      Schedule other = schedule;
      for (Fault& fault : other.faults) rotate(replicas, by, fault);
      const bool possible = std::all_of(other.faults.begin(), other.faults.end(), [&](const Fault& fault) {
        return fault.kind != FaultKind::syscall || can_fail_calls(*world.inputs, fault.node);
      });
      if (possible && known.insert(schedule::fingerprint(other)).second) rotated.push_back(std::move(other));
    }
  return rotated;
}

std::vector<Trial> replica_trials(const World& world, const std::vector<Trial>& trials) {
  std::vector<Trial> likely(trials);
  std::stable_sort(likely.begin(), likely.end(), [](const Trial& a, const Trial& b) { return a.yield > b.yield; });
  if (likely.size() > kMostOnReplicas) likely.resize(kMostOnReplicas);
  std::vector<Trial> rotated;
  for (const Trial& t : likely)
    for (Schedule& schedule : on_replicas(world, t.schedule)) {
      Trial other = t;
      other.schedule = std::move(schedule);
      other.yield *= kOnReplica;
      other.why += " (on another node that the production host may correspond to)";
      rotated.push_back(std::move(other));
    }
  return rotated;
}

}  // namespace rose::diagnose
