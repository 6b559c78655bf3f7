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
  deployment_ = &deployment;
  for (std::size_t f = 0; f < plan_.schedule.faults.size(); ++f) {
    const Fault& fault = plan_.schedule.faults[f];
    if (fault.kind != FaultKind::disk_slow) continue;
    for (std::size_t node = 0; node < plan_.nodes.size(); ++node) {
      if (!Plan::may_be(plan_.chains[f].data.node, node)) continue;
      ROSE_CHECK(deployment.add_disks(node, fault.resource.folder, true));
    }
  }
  return {};
}

deploy::PacedFile::Counters SlowDisks::counters(const Slow& slow) {
  deploy::PacedFile::Counters all;
  for (const deploy::PacedFile* disk : slow.disks) {
    const deploy::PacedFile::Counters one = disk->counters();
    all.requests += one.requests;
    all.bytes += one.bytes;
  }
  return all;
}

// Sets the disk's speed to the result of all faults that are in effect on it.
void SlowDisks::set(deploy::PacedFile& paced) {
  deploy::Pace pace;
  for (const auto& [f, slow] : slow_) {
    if (!slow.on || std::find(slow.disks.begin(), slow.disks.end(), &paced) == slow.disks.end()) continue;
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
  slow.disks.clear();
  for (const deploy::Disk* disk : deployment_->disks(node, plan_.schedule.faults[f].resource.folder)) {
    ROSE_ASSERT(disk->pace() != nullptr);
    slow.disks.push_back(disk->pace());
  }
  slow.before = counters(slow);
  for (deploy::PacedFile* disk : slow.disks) set(*disk);
}

void SlowDisks::end(std::size_t f) {
  const std::lock_guard lock(mutex_);
  const auto at = slow_.find(f);
  if (at == slow_.end() || !std::exchange(at->second.on, false)) return;
  at->second.after = counters(at->second);
  for (deploy::PacedFile* disk : at->second.disks) set(*disk);
}

std::pair<std::string, std::uint64_t> SlowDisks::effect(std::size_t f) const {
  const std::lock_guard lock(mutex_);
  const Fault& fault = plan_.schedule.faults[f];
  const auto at = slow_.find(f);
  if (at == slow_.end()) return {"", 0};
  const Slow& slow = at->second;
  const deploy::PacedFile::Counters now = slow.on ? counters(slow) : slow.after;
  const std::uint64_t requests = now.requests - slow.before.requests;
  return {
      fmt::format("{} requests with {} waited at the disk of {}", requests, format_size(now.bytes - slow.before.bytes),
                  place_words(plan_.nodes[slow.node], fault.resource.folder)),
      requests};
}

std::string SlowDisks::elsewhere(std::size_t f) const {
  const std::lock_guard lock(mutex_);
  const auto at = slow_.find(f);
  return at == slow_.end() ? "" : elsewhere_words(plan_.in_container[at->second.node], plan_.schedule.faults[f]);
}

}  // namespace rose::inject
