// Conditions and faults of one schedule, armed for one run; always undone. State and order of
// conditions live in BPF maps, advanced by the thread that meets them; the seccomp supervisor reads that same state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "jvm/session.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::inject {

// Everything about a schedule that can be refused before anything starts: nodes, peers, syscalls, functions
// (looked up in the nodes' binaries, with suggestions), offsets, fault kinds this machine cannot do.
// ErrorKind::input or ErrorKind::environment. Faults on `attach` nodes are refused unless allowed (--allow-attached).
[[nodiscard]] Result<void> check(const schedule::Schedule& schedule, const config::Config& config,
                                 bool allow_attached = false);

// What an injector did, for who must tell it from what happened. Times are of the monotonic clock.
struct ChangedCall {
  std::size_t fault = 0;   // of the schedule
  std::int64_t at_ns = 0;  // when it was decided about the call, ahead of it
  pid_t tid = 0;
  int syscall = 0;
};
struct Stroke {  // of a crash or pause
  std::size_t fault = 0;
  std::string node;
  std::int64_t at_ns = 0;
  std::int64_t ended_ns = 0;  // a pause; 0: not yet
  bool pause = false;
  bool whole = false;  // all that the node is, not these processes alone
  int signal = 0;
  std::vector<pid_t> pids;
};
struct Deeds {
  std::vector<ChangedCall> calls;  // as decided, the first 65,536
  std::vector<Stroke> strokes;
};

class Injector : public deploy::NodeObserver {
 public:
  // Checks, chooses the backend for syscall faults. Nothing is attached yet. `stacks`: outcomes tell where in the code
  // the threads were that faults hit.
  [[nodiscard]] static Result<std::unique_ptr<Injector>> create(const schedule::Schedule& schedule,
                                                                const config::Config& config,
                                                                bool allow_attached = false, bool stacks = false);

  // Some of its conditions and faults are about methods of JVMs: arm() needs a session.
  [[nodiscard]] virtual bool needs_jvms() const = 0;
  // Attaches programs to the created, not yet started deployment. Counting begins here. What the nodes' JVMs are to do
  // is added to the session, which the caller then writes, and which outlives the injector.
  [[nodiscard]] virtual Result<void> arm(deploy::Deployment& deployment, jvm::Session* jvms = nullptr) = 0;
  // Time zero of `elapsed`, by the monotonic clock; faults without conditions on processes and the network fire now.
  virtual void workload_began(std::int64_t zero_ns) = 0;
  // Returns when everything whose time has come by now has been carried out, however busy the machine is. A short
  // workload may be over before the thread that keeps time had the processor: what the schedule has at its beginning
  // belongs to the run all the same.
  virtual void catch_up() = 0;
  // Heals links, thaws nodes, answers what is pending, detaches. Call before Deployment::stop(); after it nothing
  // fires.
  virtual void disarm() = 0;

  // One for each fault of the schedule, in its order; final after disarm().
  [[nodiscard]] virtual std::vector<schedule::FaultOutcome> outcomes() const = 0;
  // One for each name of the schedule's order; final after disarm(). `broken`: a sentence about what came before its
  // turn; "": nothing.
  [[nodiscard]] virtual std::vector<schedule::OrderOutcome> order(std::string& broken) const = 0;
  // A step of the workload: `begin` returns once the order lets it happen, `end` says that it has happened.
  // ErrorKind::usage: the order names no such step, or it has been made; ErrorKind::cancelled: the run ends. From any
  // thread.
  enum class StepPart { begin, end };
  [[nodiscard]] virtual Result<void> step(const std::string& name, StepPart part) = 0;
  // Final after disarm(), too.
  [[nodiscard]] virtual Deeds deeds() const = 0;
  // True once every fault has fired (or was withdrawn) and ended.
  [[nodiscard]] virtual bool finished() const = 0;
  // "seccomp" and why it was chosen; "" when the schedule has no syscall fault or condition.
  [[nodiscard]] virtual std::string backend() const = 0;
};

}  // namespace rose::inject
