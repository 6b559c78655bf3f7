// Conditions that no kernel program sees: times, roles that somebody has already, lines of logs, starts and ends of
// processes. They are counted as the kernel does: all that are current first, then each of them once. By the injector's
// thread, but for processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
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
  OwnConditions(const Plan& plan, State& state, const TimeZero& zero) : plan_(plan), state_(state), zero_(zero) {}

  // The next node's, in their order.
  void add_node(std::vector<std::filesystem::path> logs) { tails_.emplace_back(std::move(logs)); }

  // A condition that is its chain's current one. True when something moved; `next`: when to look again.
  bool look(std::size_t condition, std::uint64_t& next);
  // All that wait for logs.
  bool read_logs(std::uint64_t& next);
  // A process of the node "started", "exited", ... From any thread.
  void process_state(std::size_t node, std::string_view what, pid_t pid);

 private:
  [[nodiscard]] std::uint64_t due_ns(std::size_t condition) const;
  bool read_log(std::size_t condition, std::size_t node);

  const Plan& plan_;
  State& state_;
  const TimeZero& zero_;
  std::vector<LogTail> tails_;                                              // by node
  std::map<std::pair<std::size_t, std::size_t>, LogTail::Reader> readers_;  // by condition and node
};

}  // namespace rose::inject
