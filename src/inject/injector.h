// Arms the conditions and faults of one schedule for one run, and always undoes the faults. BPF maps hold the
// conditions, their order, and which of them have been met; the thread that meets a condition updates this state. The
// seccomp supervisor uses the same state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "jvm/session.h"
#include "python/session.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::inject {

// Checks everything about a schedule that can be refused before the run: nodes, peers, system calls, functions (looked
// up in the nodes' binaries, with suggestions for unknown names), offsets, and kinds of faults that this machine does
// not support. Returns ErrorKind::input or ErrorKind::environment. Faults on `attach` nodes are refused unless
// `allow_attached` is true (--allow-attached).
[[nodiscard]] Result<void> check(const schedule::Schedule& schedule, const config::Config& config,
                                 bool allow_attached = false);

// What an injector did. It is recorded so that injected results can be distinguished from events that happened by
// themselves. Times are CLOCK_MONOTONIC.
struct ChangedCall {
  std::size_t fault = 0;   // index in the schedule
  std::int64_t at_ns = 0;  // when the injector decided about the call, before it was made
  pid_t tid = 0;
  int syscall = 0;
};
struct ProcessAction {  // for a crash or pause
  std::size_t fault = 0;
  std::string node;
  std::int64_t at_ns = 0;
  std::int64_t ended_ns = 0;  // for a pause; 0: not ended
  bool pause = false;
  bool whole = false;  // the whole node was affected, not only these processes
  int signal = 0;
  std::vector<pid_t> pids;
};
struct InjectionRecord {
  std::vector<ChangedCall> calls;  // the first 65,536, in the order of decisions
  std::vector<ProcessAction> processes;
};

class Injector : public deploy::NodeObserver {
 public:
  // Checks the schedule and selects the backend for syscall faults. Attaches nothing. `stacks`: the outcomes also
  // contain the stacks of affected threads.
  [[nodiscard]] static Result<std::unique_ptr<Injector>> create(const schedule::Schedule& schedule,
                                                                const config::Config& config,
                                                                bool allow_attached = false, bool stacks = false);

  // True if conditions or faults concern Java methods, or if stacks of JVMs are recorded: arm() then needs a session.
  [[nodiscard]] virtual bool needs_jvms() const = 0;
  // Attaches programs to the deployment, which must be created but not started. From now on, conditions are counted.
  // Adds requests for the nodes' JVMs to the session. The caller must then write the session, which must outlive the
  // injector.
  [[nodiscard]] virtual Result<void> arm(deploy::Deployment& deployment, jvm::Session* jvms = nullptr) = 0;
  // Connects the session that knows in which functions the threads of Python processes are. Call it before nodes start;
  // `python` must exist until disarm().
  virtual void connect(const python::Session& python) = 0;
  // Sets time zero of `elapsed` (CLOCK_MONOTONIC). Faults without conditions and `after` fire now, except faults that
  // wait for a call or location, and changes of a node's clock, which are in effect from the start of the node.
  virtual void workload_began(std::int64_t zero_ns) = 0;
  // Returns when everything that is due by now has been carried out, even if the machine is busy. A short workload may
  // end before the injector's thread has been scheduled, but faults that were due must still be injected during the
  // run.
  virtual void catch_up() = 0;
  // Heals links, resumes paused nodes, answers pending calls and detaches the programs. Call it before
  // Deployment::stop(). Nothing fires afterwards.
  virtual void disarm() = 0;

  // One outcome per fault, in the order of the schedule; final after disarm().
  [[nodiscard]] virtual std::vector<schedule::FaultOutcome> outcomes() const = 0;
  // One outcome per name in the schedule's `order`; final after disarm(). `broken`: a sentence about the first
  // violation of the order, or "".
  [[nodiscard]] virtual std::vector<schedule::OrderOutcome> order(std::string& broken) const = 0;
  // Handles a step of the workload: `begin` returns when the order allows the step, `end` reports that it has happened.
  // Returns ErrorKind::usage if the order has no such step or the step has already been made, ErrorKind::cancelled if
  // the run ends. Thread-safe.
  enum class StepPart { begin, end };
  [[nodiscard]] virtual Result<void> step(const std::string& name, StepPart part) = 0;
  // What the injector did; final after disarm().
  [[nodiscard]] virtual InjectionRecord record() const = 0;
  // A sentence about what this machine could not do for the schedule, so that the run was not as planned; "" if there
  // is nothing of this kind.
  [[nodiscard]] virtual std::string trouble() const = 0;
  // True once every fault has fired and ended, or cannot fire any more because it was withdrawn or another fault of its
  // group has fired.
  [[nodiscard]] virtual bool finished() const = 0;
  // The name of the backend and the reason for the choice (see backend.h); "" if the schedule has no syscall faults or
  // conditions.
  [[nodiscard]] virtual std::string backend() const = 0;
};

}  // namespace rose::inject
