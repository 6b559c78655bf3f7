#include "inject/power.h"

#include <unistd.h>

#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "inject/own_disk.h"

namespace rose::inject {
namespace {

using schedule::Fault;
using schedule::Loss;

constexpr std::int64_t kMostWait = 20 * kSecond;  // until killed processes have ended
constexpr useconds_t kPoll = 1'000;

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
  ROSE_CHECK(check_own_disk(schedule, fault, node, "omit `lose`"));
  return deploy::Disk::check();
}

Result<void> PowerLosses::prepare(const Plan& plan, deploy::Deployment& deployment) {
  deployment_ = &deployment;
  for (const std::size_t f : plan.losses) {
    const Fault& fault = plan.schedule.faults[f];
    for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
      if (!Plan::may_be(plan.chains[f].data.node, node)) continue;
      ROSE_CHECK(deployment.add_disks(node, fault.resource.folder, false));
    }
  }
  return {};
}

Result<std::string> PowerLosses::lose(const Plan& plan, std::size_t f, std::size_t node) const {
  const Fault& fault = plan.schedule.faults[f];
  const std::int64_t until = monotonic_ns() + kMostWait;
  while (!deployment_->processes(node).empty()) {
    if (monotonic_ns() > until)
      return fail(ErrorKind::inconclusive, fmt::format("processes of {} do not end", plan.nodes[node]));
    ::usleep(kPoll);
  }
  deploy::Torn torn;
  if (fault.lose != Loss::unsynced) torn = {fault.keep, fault.lose == Loss::torn};
  const std::vector<deploy::Disk*> disks = deployment_->disks(node, fault.resource.folder);
  if (disks.empty()) return "nothing was lost" + elsewhere_words(plan.in_container[node], fault);
  deploy::PowerLoss all;
  for (deploy::Disk* disk : disks) {
    if (disk->keeps_power()) continue;
    ROSE_TRY(const deploy::PowerLoss loss, disk->lose(torn));
    all.gone += loss.gone;
    all.shorter += loss.shorter;
    all.older += loss.older;
    all.torn += loss.torn;
    all.bytes += loss.bytes;
  }
  return described(all);
}

}  // namespace rose::inject
