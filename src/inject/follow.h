// What userspace knows of each chain beyond the state that the kernel programs share: what was carried out, upon whom,
// and what there is to say of it. From any thread.
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
  std::atomic<bool> acted{false};          // somebody has carried it out, or does so now
  std::atomic<std::uint64_t> ended_ns{0};  // 0: it has not
  std::atomic<bool> nobody{false};         // crash, pause: there was no process
  std::atomic<bool> failed{false};         // a limit, a loss of power: it could not be done, `trouble` says why
  std::atomic<bool> lost{false};           // a loss of power: it was done, or cannot be
  std::atomic<bool> paused{false};
  std::atomic<bool> crashed{false};
  std::atomic<std::uint64_t> changed{0};  // calls: answered, executed in part or late; clocks: read while it was wrong
  std::atomic<bool> begun{false};  // a step of the workload: it is being made, or was
  bool ending = false;             // the injector's thread has ordered the end of a pause
};

// For people.
struct Said {
  std::vector<pid_t> struck;  // signalled or stopped
  std::string call;           // where it fired
  std::string detail;
  std::string what_was_lost;
  std::string trouble;
};

class Follows {
 public:
  explicit Follows(const Plan& plan) : plan_(plan), chains_(plan.chains.size()), said_(plan.chains.size()) {}

  [[nodiscard]] Follow& operator[](std::size_t chain) { return chains_[chain]; }
  [[nodiscard]] const Follow& operator[](std::size_t chain) const { return chains_[chain]; }

  [[nodiscard]] Said said(std::size_t chain) const;
  void struck(std::size_t chain, std::vector<pid_t> pids);
  void call(std::size_t chain, std::string text);
  void detail(std::size_t chain, std::string text);
  void what_was_lost(std::size_t chain, std::string text);
  // Told as a warning, too.
  void trouble(std::size_t chain, const Error& error);
  void note(std::size_t chain, std::string trouble);

 private:
  const Plan& plan_;
  std::vector<Follow> chains_;
  mutable std::mutex mutex_;
  std::vector<Said> said_;  // under mutex_
};

}  // namespace rose::inject
