// The stacks of the threads that faults hit. What the kernel programs copied on the spot, or is copied here of a thread
// that is held in a call or stopped, becomes frames once the run is over; files are looked up as the process saw them.
// A fault's first few firings.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "inject/plan.h"
#include "inject/programs.h"
#include "jvm/session.h"
#include "jvm/stacks.h"
#include "schedule/outcome.h"
#include "symbols/unwind.h"

namespace rose::inject {

struct TakenStack {
  std::int64_t at_ns = 0;  // of the monotonic clock
  int pid = 0, tid = 0;
  std::optional<std::size_t> node;  // where it is not the fault's own
  std::string thread;
  std::string why;
  symbols::Snapshot snapshot;         // its maps' files are still to be found
  std::vector<std::uint64_t> inodes;  // beside the maps
  std::string missing;                // what could not be copied
  jvm::JavaStack java;                // what a JVM's agent said of it
};

// What a kernel program wrote down. It may be damaged: nothing of it is trusted.
[[nodiscard]] TakenStack read_stack(const rose_stack& stack);
// Executable memory in the text of /proc/PID/maps.
void note_maps(std::string_view text, TakenStack& taken);

class Stacks {
 public:
  // `programs` outlives it.
  Stacks(const Plan& plan, Programs& programs);
  // JVMs' agents leave their files there. `jvms` outlives it.
  void connect(const jvm::Session& jvms) { jvms_ = &jvms; }

  // The thread stands in the kernel: held in a call, or stopped. From any thread.
  void take(std::size_t chain, pid_t pid, pid_t tid, const std::string& why);
  // A few threads of a process, the one that is `likely` to have to do with the fault first, then those that run: ahead
  // of a signal, or when they have been stopped. Then no JVM answers any more. `killed`: the signal leaves nothing of
  // the process, so where one of them runs it may be stopped before, for 20 ms at most (a busy machine lets it run only
  // then), to see where.
  struct Process {
    pid_t pid = 0;
    pid_t likely = 0;  // 0: nobody knows
    bool stopped = false, killed = false;
  };
  void take_process(std::size_t chain, const Process& process, const std::string& why);
  // A thread that waits in the kernel, of any node. False: there are enough of this fault.
  bool take_waiting(std::size_t chain, std::size_t node, pid_t pid, pid_t tid, const std::string& why);
  // A process of the node lives: its root is remembered for when none does.
  void note_root(std::size_t node, pid_t pid);

  // Frames of all that was taken so far, of each chain; `living`: the nodes' processes by now. `why`: of what kernel
  // programs took.
  using Told = std::map<std::size_t, std::vector<schedule::Stack>>;
  [[nodiscard]] Told tell(const std::vector<std::vector<pid_t>>& living,
                          const std::function<std::size_t(std::size_t)>& node_of,
                          const std::function<std::string(std::size_t)>& why) const;

 private:
  [[nodiscard]] bool wanted(std::size_t chain);
  void take(std::size_t chain, pid_t pid, pid_t tid, const std::string& why, bool stopped,
            std::optional<std::size_t> node = {});
  void take_running(std::size_t chain, Process& process, pid_t tid, const std::string& why);
  // Fewer of this fault are taken than are told.
  [[nodiscard]] bool more_of(std::size_t chain);
  void ask_java(pid_t tid, std::string_view maps, TakenStack& taken);
  [[nodiscard]] schedule::Stack tell_one(TakenStack taken, std::size_t node, const std::vector<pid_t>& living,
                                         std::int64_t limit_ns) const;

  const Plan& plan_;
  Programs& programs_;
  const jvm::Session* jvms_ = nullptr;
  std::mutex asking_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> begun_;  // by chain
  std::map<std::size_t, std::vector<TakenStack>> taken_;
  std::map<std::size_t, Fd> roots_;  // by node
};

}  // namespace rose::inject
