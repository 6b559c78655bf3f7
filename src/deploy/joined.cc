// Containers that join the PID or IPC namespace of another node's container (`pid: service:X`). When the first process
// of a PID namespace ends, the kernel ends all others, so such a node ends with the owner of its namespace and starts
// after it.
#include <algorithm>

#include "base/clock.h"
#include "deploy/cluster.h"
#include "deploy/machine/cgroup.h"
#include "kernel/processes.h"

namespace rose::deploy {

std::vector<std::size_t> Cluster::owners(std::size_t node) const {
  std::vector<std::size_t> found;
  if (const auto& container = config_.nodes[node].container)
    for (const std::string* name : {&container->pid_of, &container->ipc_of})
      for (const NodeInfo& info : infos_)
        if (info.name == *name) found.push_back(info.index);
  return found;
}

bool Cluster::is_joined(std::size_t node) const {
  return std::any_of(infos_.begin(), infos_.end(), [&](const NodeInfo& info) {
    const std::vector<std::size_t> others = owners(info.index);
    return std::find(others.begin(), others.end(), node) != others.end();
  });
}

std::vector<std::vector<std::size_t>> Cluster::owners_first(std::vector<std::size_t> nodes) const {
  std::vector<std::vector<std::size_t>> rounds;
  while (!nodes.empty()) {
    const auto waits = [&](std::size_t node) {
      const std::vector<std::size_t> others = owners(node);
      return std::any_of(others.begin(), others.end(), [&](std::size_t other) {
        return std::find(nodes.begin(), nodes.end(), other) != nodes.end();
      });
    };
    const auto later =
        std::stable_partition(nodes.begin(), nodes.end(), [&](std::size_t node) { return !waits(node); });
    ROSE_ASSERT(later != nodes.begin());  // the configuration contains no cycles
    rounds.emplace_back(nodes.begin(), later);
    nodes.erase(nodes.begin(), later);
  }
  return rounds;
}

std::string Cluster::missing_owner(std::size_t node) const {
  for (const std::size_t owner : owners(node))
    if (states_[owner]->pid == 0) return infos_[owner].name;
  return "";
}

std::optional<std::size_t> Cluster::ended_with(std::size_t node) const {
  const auto& container = config_.nodes[node].container;
  if (!container || container->pid_of.empty()) return std::nullopt;
  const std::size_t owner = owners(node).front();
  const NodeState& state = *states_[owner];
  if (state.pid == 0) return owner;
  const auto stat = kernel::process_stat(state.pid);
  if (!stat || stat->exiting || stat->state == 'Z' || stat->state == 'X') return owner;
  return std::nullopt;
}

// Ends the remaining processes of a node that has joined another PID namespace. Its main process is not the first
// process of the namespace, so the kernel does not end the others with it. The engine does not find them either,
// because it looks in the cgroup in which it placed the container, and rose has moved them to the node's cgroup.
void Cluster::end_others(std::size_t node) const {
  const auto& container = config_.nodes[node].container;
  if (!container) return;
  const std::vector<std::string>& options = container->options;
  const auto pid = std::find(options.begin(), options.end(), "--pid");
  const bool of_machine = pid != options.end() && pid + 1 != options.end() && pid[1] == "host";
  if ((!container->pid_of.empty() || of_machine) && cgroup::populated(infos_[node].cgroup))
    (void)cgroup::kill(infos_[node].cgroup);
}

}  // namespace rose::deploy
