#include "logs/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rose::logs {

std::string key_of(const Logs& failure, const Observed& observed) {
  return fmt::format("{} says {}", failure.nodes[observed.node].name, observed.kind);
}

ObservableMatcher::ObservableMatcher(const Evidence& evidence, Templates& kinds, ReadOptions options)
    : evidence_(evidence), kinds_(kinds), options_(std::move(options)) {}

std::set<std::string> ObservableMatcher::observed_in(const std::vector<Input>& run) {
  std::lock_guard lock(mutex_);
  const Result<Logs> logs = read_logs(run, options_, kinds_);
  std::set<std::string> keys;
  if (!logs) return keys;
  for (const Observed& observed : evidence_.difference.observed) {
    std::uint64_t count = 0;
    for (const NodeLog& node : logs->nodes)  // any node may log the message, because roles move between nodes
      if (observed.kind < node.counts.size()) count = std::max(count, node.counts[observed.kind]);
    if (count > observed.normal) keys.insert(key_of(evidence_.failure, observed));
  }
  return keys;
}

std::vector<SideBySide> ObservableMatcher::side_by_side(const std::vector<Input>& run, const Watch* watch) {
  std::lock_guard lock(mutex_);
  Result<Logs> logs = read_logs(run, options_, kinds_);
  if (!logs) return {};
  if (watch != nullptr) watch->apply(*logs);
  return logs::side_by_side(evidence_.failure, *logs, kinds_);
}

}  // namespace rose::logs
