#include "inject/slow_disks.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "inject/own_disk.h"

namespace rose::inject {
namespace {

using schedule::Fault;
using schedule::FaultKind;

// The smaller of two limits; 0 means unlimited.
template <typename T>
T narrower(T a, T b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

}  // namespace

Result<void> check_slow(const schedule::Schedule& schedule, const Fault& fault, const config::Node& node) {
  ROSE_CHECK(check_own_disk(schedule, fault, node, "delay its calls one by one: kind = \"syscall\" with `delay`"));
  ROSE_CHECK(deploy::Disk::check());
  return deploy::PacedFile::check();
}

Result<void> SlowDisks::prepare(deploy::Deployment& deployment) {
  for (std::size_t f = 0; f < plan_.schedule.faults.size(); ++f) {
    const Fault& fault = plan_.schedule.faults[f];
    if (fault.kind != FaultKind::disk_slow) continue;
    for (std::size_t node = 0; node < plan_.nodes.size(); ++node) {
      if (!Plan::may_be(plan_.chains[f].data.node, node)) continue;
      ROSE_TRY(deploy::Disk* const disk, deployment.add_disk(node, fault.resource.folder, true));
      ROSE_ASSERT(disk->pace() != nullptr);
      disks_[std::pair(node, fault.resource.folder)] = disk->pace();
    }
  }
  return {};
}

deploy::PacedFile& SlowDisks::disk(std::size_t f) const {
  return *disks_.at(std::pair(slow_.at(f).node, plan_.schedule.faults[f].resource.folder));
}

// Sets the pace that results from all faults in effect.
void SlowDisks::set(deploy::PacedFile& paced) {
  deploy::Pace pace;
  for (const auto& [f, slow] : slow_) {
    if (!slow.on || &disk(f) != &paced) continue;
    const schedule::Resource& wanted = plan_.schedule.faults[f].resource;
    pace.rate = narrower(pace.rate, wanted.rate);
    pace.iops = narrower(pace.iops, wanted.iops);
    pace.delay_ns = std::max(pace.delay_ns, wanted.delay_ns);
  }
  paced.set(pace);
}

void SlowDisks::begin(std::size_t f, std::size_t node) {
  const std::lock_guard lock(mutex_);
  Slow& slow = slow_[f];
  slow.node = node;
  slow.on = true;
  slow.before = disk(f).counters();
  set(disk(f));
}

void SlowDisks::end(std::size_t f) {
  const std::lock_guard lock(mutex_);
  const auto at = slow_.find(f);
  if (at == slow_.end() || !std::exchange(at->second.on, false)) return;
  at->second.after = disk(f).counters();
  set(disk(f));
}

std::pair<std::string, std::uint64_t> SlowDisks::effect(std::size_t f) const {
  const std::lock_guard lock(mutex_);
  const Fault& fault = plan_.schedule.faults[f];
  const auto at = slow_.find(f);
  if (at == slow_.end()) return {"", 0};
  const Slow& slow = at->second;
  const deploy::PacedFile::Counters now = slow.on ? disk(f).counters() : slow.after;
  const std::uint64_t requests = now.requests - slow.before.requests;
  const std::string& name = plan_.nodes[slow.node];
  return {
      fmt::format("{} requests with {} waited at the disk of {}", requests, format_size(now.bytes - slow.before.bytes),
                  fault.resource.folder.empty() ? name : fmt::format("{}/{}", name, fault.resource.folder)),
      requests};
}

}  // namespace rose::inject
