// Checks the conditions that BPF programs cannot check: elapsed time, roles that a node already has, log lines, and
// changes in the state of processes. Use it in the injector's thread; only process_state() is thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "inject/log_tail.h"
#include "inject/plan.h"
#include "inject/state.h"
#include "inject/time_zero.h"

namespace rose::inject {

class OwnConditions {
 public:
  // Returns how many processes of a node the kernel has killed for lack of memory since the run began.
  using Killed = std::function<std::uint64_t(std::size_t node)>;

  OwnConditions(const Plan& plan, State& state, const TimeZero& zero, Killed killed)
      : plan_(plan), state_(state), zero_(zero), killed_(std::move(killed)) {}

  // Adds the next node, in the order of nodes. `folder`: the node's folder, which contains the logs.
  void add_node(std::vector<std::filesystem::path> logs, std::filesystem::path folder) {
    tails_.emplace_back(std::move(logs), std::move(folder));
  }

  // Checks a condition, which must be the current one of its chain. Returns true if it is met; always false unless it
  // is on elapsed time or on a role. This and the following methods lower `next` to the time of the next check.
  bool look(std::size_t condition, std::uint64_t& next);
  // Checks all conditions that wait for log lines. Returns true if a condition was met.
  bool read_logs(std::uint64_t& next);
  // Checks all conditions that wait until the kernel kills a process for lack of memory. Returns true if it counted a
  // kill.
  bool read_kills(std::uint64_t& next);
  // Reports that a process of the node has "started", "exited", ... As in the kernel, all current conditions are
  // determined before the first of them is counted, so that one event cannot meet two successive conditions of a chain.
  // Thread-safe.
  void process_state(std::size_t node, std::string_view what, pid_t pid);

 private:
  [[nodiscard]] std::uint64_t due_ns(std::size_t condition) const;
  bool read_log(std::size_t condition, std::size_t node);

  const Plan& plan_;
  State& state_;
  const TimeZero& zero_;
  const Killed killed_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> killed_before_;  // by condition and node
  std::vector<LogTail> tails_;                                                  // by node
  std::map<std::pair<std::size_t, std::size_t>, LogTail::Reader> readers_;      // by condition and node
};

}  // namespace rose::inject
