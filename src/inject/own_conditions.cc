#include "inject/own_conditions.h"

#include <algorithm>

namespace rose::inject {
namespace {

constexpr std::uint64_t kLogPollNs = 5'000'000;
constexpr std::uint64_t kKilledPollNs = 5'000'000;

}  // namespace

bool OwnConditions::look(std::size_t condition, std::uint64_t& next) {
  const auto& data = plan_.conditions[condition].data;
  if (data.kind == ROSE_ON_ELAPSED) {
    const auto due = due_ns(condition);
    if (due > now_ns()) {
      next = std::min(next, due);
      return false;
    }
    state_.count(condition, 0, 0, now_ns());
    return true;
  }
  if (data.kind == ROSE_ON_ROLE) {
    // A BPF program detects when a node takes the role. This code handles a node that already has the role.
    const auto holder = state_.holder(data.role);
    if (holder == 0 || !state_.is_there(data.node, holder - 1)) return false;
    state_.count(condition, 0, 0, now_ns(), holder - 1);
    return true;
  }
  return false;
}

std::uint64_t OwnConditions::due_ns(std::size_t condition) const {
  const auto since = state_.current_since(condition);
  if (!since) return kNever;
  const std::uint64_t base = *since == 0 ? zero_.workload_ns() : *since;
  return base == 0 ? kNever : base + static_cast<std::uint64_t>(plan_.conditions[condition].source->elapsed_ns);
}

bool OwnConditions::read_logs(std::uint64_t& next) {
  bool moved = false, waiting = false;
  std::vector<bool> needed(plan_.nodes.size());
  for (std::size_t i = 0; i < plan_.conditions.size(); ++i) {
    const auto& condition = plan_.conditions[i];
    if (condition.data.kind != ROSE_ON_LOG || !state_.pending(i)) continue;
    waiting = true;
    for (std::size_t node = 0; node < needed.size(); ++node) {
      if (!Plan::may_be(condition.data.node, node)) continue;
      needed[node] = true;
      moved = read_log(i, node) || moved;
    }
  }
  if (waiting) next = std::min(next, now_ns() + kLogPollNs);
  // Samples are taken after reading, and get the current time. With an older time stamp, a reader that starts at the
  // sample would skip the lines that were logged between that time and now.
  for (std::size_t node = 0; node < needed.size(); ++node) {
    if (needed[node]) tails_[node].sample(now_ns());
  }
  return moved;
}

bool OwnConditions::read_log(std::size_t i, std::size_t node) {
  const auto& condition = plan_.conditions[i];
  if (!state_.is_current(i)) return false;
  auto& reader = readers_[{i, node}];
  if (!reader.begun) {
    const auto since = state_.current_since(i);
    if (!since) return false;
    tails_[node].begin(reader, *since);
  }
  bool moved = false;
  LogTail::read(reader, [&](std::string_view line) {
    if (!state_.is_there(condition.data.node, node) || !condition.log->found_in(line)) return true;
    state_.count(i, 0, 0, now_ns(), static_cast<std::uint32_t>(node));
    if (state_.is_current(i)) return true;
    moved = true;
    return false;
  });
  return moved;
}

bool OwnConditions::read_kills(std::uint64_t& next) {
  bool moved = false;
  for (std::size_t i = 0; i < plan_.conditions.size(); ++i) {
    const auto& condition = plan_.conditions[i];
    if (condition.data.kind != ROSE_ON_PROCESS || condition.source->state != schedule::kOutOfMemory) continue;
    for (std::size_t node = 0; node < plan_.nodes.size(); ++node) {
      if (!Plan::may_be(condition.data.node, node)) continue;
      // Read the number of kills also for conditions that are not current yet. Otherwise a kill would count for a
      // condition that becomes current after the kill.
      std::uint64_t& before = killed_before_[{i, node}];
      const std::uint64_t kills = killed_(node);
      for (; before < kills; ++before) {
        if (!state_.is_current(i) || !state_.is_there(condition.data.node, node)) continue;
        state_.count(i, 0, 0, now_ns(), static_cast<std::uint32_t>(node));
        moved = true;
      }
    }
    if (state_.is_current(i)) next = std::min(next, now_ns() + kKilledPollNs);
  }
  return moved;
}

void OwnConditions::process_state(std::size_t node, std::string_view what, pid_t pid) {
  std::vector<std::size_t> current;
  for (std::size_t i = 0; i < plan_.conditions.size(); ++i) {
    const auto& condition = plan_.conditions[i];
    if (condition.data.kind == ROSE_ON_PROCESS && state_.is_there(condition.data.node, node) &&
        condition.source->state == what && state_.is_current(i)) {
      current.push_back(i);
    }
  }
  for (const auto i : current)
    state_.count(i, static_cast<std::uint32_t>(pid), 0, now_ns(), static_cast<std::uint32_t>(node));
}

}  // namespace rose::inject
