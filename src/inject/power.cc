#include "inject/power.h"

#include <unistd.h>

#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

namespace rose::inject {
namespace {

using schedule::Fault;
using schedule::FaultKind;
using schedule::Loss;

constexpr std::int64_t kMostWait = 20 * kSecond;  // for killed processes to be gone
constexpr useconds_t kPoll = 1'000;

bool may_meet(const Fault& a, const Fault& b) { return a.node == b.node || a.node.starts_with('@') || b.node.starts_with('@'); }

// One folder in the other, or the same.
bool overlap(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b || a.starts_with(b + "/") || b.starts_with(a + "/");
}

std::string described(const deploy::PowerLoss& loss) {
  std::vector<std::string> parts;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  add(loss.gone, "gone");
  add(loss.shorter, "shorter");
  add(loss.older, "older");
  add(loss.torn, "torn");
  if (parts.empty()) return "all files had been synced";
  return fmt::format("of its files, {}", fmt::join(parts, ", "));
}

}  // namespace

Result<void> check_power(const schedule::Schedule& schedule, const Fault& fault, const config::Node& node) {
  if (node.attach)
    return fail(ErrorKind::environment, fmt::format("node '{}' was not started by rose: its files lie where rose has no disk of its own", node.name),
                "start it with `command`, or leave `lose` out");
  if (node.container)
    return fail(ErrorKind::environment, fmt::format("node '{}' is a container: its files lie where rose has no disk of its own", node.name),
                "start it with `command` alone, or leave `lose` out");
  for (const Fault& other : schedule.faults) {
    if (&other == &fault || !may_meet(fault, other) || !overlap(fault.resource.folder, other.resource.folder)) continue;
    const bool full = other.kind == FaultKind::disk_full;
    const bool lost = other.kind == FaultKind::crash && other.lose != Loss::nothing && other.resource.folder != fault.resource.folder;
    if (!full && !lost) continue;
    return fail(ErrorKind::input, fmt::format("its folder is on the disk of fault '{}' too", other.id),
                full ? "a disk that gets full and one that loses its power are two: give each a 'path' of its own"
                     : "give both the same 'path', or folders of which none is in the other");
  }
  return deploy::Disk::check();
}

Result<void> PowerLosses::prepare(const Plan& plan, deploy::Deployment& deployment) {
  deployment_ = &deployment;
  for (const std::size_t f : plan.losses) {
    const Fault& fault = plan.schedule.faults[f];
    for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
      if (!Plan::may_be(plan.chains[f].data.node, node)) continue;
      ROSE_TRY(disks_[std::pair(node, fault.resource.folder)], deployment.add_disk(node, fault.resource.folder));
    }
  }
  return {};
}

Result<std::string> PowerLosses::lose(const Plan& plan, std::size_t f, std::size_t node) const {
  const Fault& fault = plan.schedule.faults[f];
  const std::int64_t until = monotonic_ns() + kMostWait;
  while (!deployment_->processes(node).empty()) {
    if (monotonic_ns() > until) return fail(ErrorKind::inconclusive, fmt::format("processes of {} do not die", plan.nodes[node]));
    ::usleep(kPoll);
  }
  deploy::Torn torn;
  if (fault.lose != Loss::unsynced) torn = {fault.keep, fault.lose == Loss::torn};
  ROSE_TRY(const deploy::PowerLoss loss, disks_.at(std::pair(node, fault.resource.folder))->lose(torn));
  return described(loss);
}

}  // namespace rose::inject
