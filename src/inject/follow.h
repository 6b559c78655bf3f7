// What user space knows about each chain in addition to the state shared with BPF programs: what was carried out, on
// which processes, and remarks for reports. Thread-safe.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "inject/plan.h"

namespace rose::inject {

struct Follow {
  std::atomic<bool> acted{false};          // the fault has been carried out, or is being carried out
  std::atomic<bool> complete{false};       // everything is done and counted; see carried_out()
  std::atomic<std::uint64_t> ended_ns{0};  // 0: not ended
  std::atomic<bool> no_process{false};     // for a crash or pause: the node had no process
  std::atomic<bool> failed{false};         // could not be carried out; `trouble` has the reason
  // the power loss was attempted; `failed` is set if it could not be carried out
  std::atomic<bool> lost{false};
  std::atomic<bool> paused{false};
  std::atomic<bool> crashed{false};
  // Number of calls that were answered, executed in part, delayed, or interrupted by a crash. For a pause: 1 if
  // processes were stopped. For a clock: 1 if the wrong clock was read.
  std::atomic<std::uint64_t> changed{0};
  std::atomic<bool> passed_over{false};  // a call continued without the fault, because rose does not act on its file
  std::atomic<bool> same{false};         // a call would have had the result of the fault anyway
  std::atomic<bool> begun{false};        // for a step of the workload: it has been started
  bool ending = false;                   // the injector's thread has ordered the end of a pause
};

// True once the fault is complete. A fault that fires is not always complete at once: some processes may not have been
// signalled or stopped yet, and packets that were sent before a partition may still be in transit. A fault is reported
// as fired only when it is complete, so that readers of the report can rely on its effects.
[[nodiscard]] bool carried_out(const PlannedChain& chain, const Follow& follow);

// Remarks on a chain, for reports and messages.
struct Remarks {
  std::vector<pid_t> struck;  // signalled or stopped
  std::string call;           // the call at which it fired
  std::string detail;
  std::string lost_data;
  std::string trouble;
};

class Follows {
 public:
  explicit Follows(const Plan& plan) : plan_(plan), chains_(plan.chains.size()), remarks_(plan.chains.size()) {}

  [[nodiscard]] Follow& operator[](std::size_t chain) { return chains_[chain]; }
  [[nodiscard]] const Follow& operator[](std::size_t chain) const { return chains_[chain]; }

  [[nodiscard]] Remarks remarks(std::size_t chain) const;
  void struck(std::size_t chain, std::vector<pid_t> pids);
  void call(std::size_t chain, std::string text);
  void detail(std::size_t chain, std::string text);
  void lost_data(std::size_t chain, std::string text);
  // Like note(), but also logs a warning.
  void trouble(std::size_t chain, const Error& error);
  void note(std::size_t chain, std::string trouble);

 private:
  const Plan& plan_;
  std::vector<Follow> chains_;
  mutable std::mutex mutex_;
  std::vector<Remarks> remarks_;  // protected by mutex_
};

}  // namespace rose::inject
