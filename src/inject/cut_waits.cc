#include "inject/cut_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "inject/sockets.h"

namespace rose::inject {
namespace {

// Times after the beginning of a partition at which waiting threads are searched for. The first search finds threads
// that already waited when the partition began, the second finds threads that have sent something since, and the third
// finds slow threads.
constexpr std::array<std::uint64_t, 3> kLooksNs = {30'000'000, 300'000'000, 1'000'000'000};
constexpr std::size_t kMostLookedAt = 500;  // threads examined per process

const Across* end_of(const std::vector<Across>& across, const rose_endpoint& endpoint) {
  const auto found = std::find_if(across.begin(), across.end(), [&](const Across& one) {
    return std::equal(one.address.bytes.begin(), one.address.bytes.end(), std::begin(endpoint.ip));
  });
  return found == across.end() ? nullptr : &*found;
}

}  // namespace

std::vector<CutWait> cut_waits(const std::vector<pid_t>& processes, const std::vector<Across>& across,
                               std::uint8_t protocol, std::size_t most) {
  std::vector<CutWait> found;
  for (const pid_t pid : processes) {
    std::size_t threads = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator at(fmt::format("/proc/{}/task", pid), error), end;
         !error && at != end && found.size() < most; at.increment(error)) {
      if (++threads > kMostLookedAt) break;
      const std::string name = at->path().filename().string();
      pid_t tid = 0;
      if (std::from_chars(name.data(), name.data() + name.size(), tid).ec != std::errc()) continue;
      const auto wait = socket_wait(pid, tid);
      const auto peer = wait ? peer_of(pid, wait->fd) : std::nullopt;
      if (!peer || (protocol != 0 && peer->endpoint.protocol != protocol)) continue;
      const Across* other = end_of(across, peer->endpoint);
      if (other == nullptr) continue;
      found.push_back({pid, tid,
                       fmt::format("waits in {} for {} ({}), which is partitioned off", wait->call, other->node,
                                   other->address.with_port(peer->endpoint.port))});
    }
  }
  return found;
}

std::uint64_t CutWaits::due(std::size_t chain, std::uint64_t fired) const {
  const auto looks = looks_.find(chain);
  const std::size_t next = looks == looks_.end() ? 0 : looks->second;
  return next < kLooksNs.size() ? fired + kLooksNs[next] : ~std::uint64_t{0};
}

void CutWaits::take(const Plan& plan, std::size_t chain, std::size_t node, const deploy::Deployment& deployment,
                    Stacks& stacks) {
  const auto has = [](const __u64* set, std::size_t one) { return ((set[one / 64] >> (one % 64)) & 1) != 0; };
  const std::lock_guard lock(mutex_);
  for (const rose_rule& rule : plan.rules) {
    if (rule.chain != chain) continue;
    std::vector<std::size_t> ends[2];
    for (std::size_t one = 0; one < plan.nodes.size(); ++one) {
      if (one == node || has(rule.side, one)) ends[0].push_back(one);
      else if ((rule.flags & ROSE_RULE_OTHERS) != 0 || has(rule.peers, one)) ends[1].push_back(one);
    }
    for (const std::size_t end : {std::size_t{0}, std::size_t{1}}) {
      std::vector<Across> across;
      for (const deploy::NodeInfo& info : deployment.nodes()) {
        // Skip nodes that use the network of another node: they have the address of that node, which is in the list,
        // too.
        if (info.network != info.index) continue;
        const auto address = parse_address(info.ip);
        const bool other = std::any_of(ends[1 - end].begin(), ends[1 - end].end(),
                                       [&](std::size_t one) { return plan.nodes[one] == info.name; });
        if (other && address) across.push_back({info.name, *address});
      }
      for (const std::size_t one : ends[end]) {
        for (const CutWait& wait : cut_waits(deployment.processes(one), across, rule.protocol, plan.stacks)) {
          if (!seen_[chain].insert(wait.tid).second) continue;
          if (!stacks.take_waiting(chain, one, wait.pid, wait.tid, wait.words)) return;
        }
      }
    }
  }
}

}  // namespace rose::inject
