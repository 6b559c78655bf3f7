// Stacks of threads affected by faults, for the first few firings of each fault. BPF programs copy them when the fault
// fires, or they are copied here while a thread is held in a call or stopped. After the run they are converted to
// frames, with the files as the process saw them.
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
#include "inject/clock.h"
#include "inject/plan.h"
#include "inject/programs.h"
#include "jvm/session.h"
#include "jvm/stacks.h"
#include "kernel/processes.h"
#include "python/session.h"
#include "schedule/outcome.h"
#include "symbols/unwind.h"

namespace rose::inject {

struct TakenStack {
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC
  int pid = 0, tid = 0;
  int own_tid = 0;                  // thread id in its own PID namespace, by which agents in the process know it
  std::optional<std::size_t> node;  // the thread's node, if it is not the fault's node
  std::string thread;
  std::string why;
  symbols::Snapshot snapshot;         // without the files of its mappings, which resolve() finds
  std::vector<std::uint64_t> inodes;  // of the mapped files, in parallel to the maps
  std::string missing;                // what could not be copied
  jvm::JavaStack java;                // what a JVM's agent reported
  std::vector<python::Frame> python;  // what a Python process recorded
};

// Converts what a BPF program recorded. The record may be damaged, so its sizes and offsets are checked.
[[nodiscard]] TakenStack read_stack(const rose_stack& stack);
// Parses the text of /proc/PID/maps and adds its executable mappings.
void note_maps(std::string_view text, TakenStack& taken);

class Stacks {
 public:
  // `programs` must outlive it.
  Stacks(const Plan& plan, Programs& programs);
  // Sets the session that has the files of the JVM agents. `jvms` must outlive this object.
  void connect(const jvm::Session& jvms) { jvms_ = &jvms; }
  // Sets the session that knows which functions the threads of Python processes execute. `python` must outlive this
  // object.
  void connect(const python::Session& python) { python_ = &python; }

  // Takes the stack of a thread that is in the kernel: held in a call, or stopped. Thread-safe.
  void take(std::size_t chain, pid_t pid, pid_t tid, const std::string& why);
  // Takes the stack of a thread that reads its clock and is held.
  void take_reader(std::size_t chain, pid_t pid, const NodeClocks::Reader& reader);
  // Takes stacks of a few threads of a process: first the thread that is `likely` related to the fault, then running
  // threads. Call it before a signal is sent, or when the threads have been stopped (`stopped`). A stopped JVM cannot
  // report its Java frames. `killed`: the signal will end the process, so a running thread may be stopped first to read
  // its stack. This delays the signal by at most 20 ms. On a busy machine, the thread may run for a part of that time.
  struct Process {
    pid_t pid = 0;
    pid_t likely = 0;  // 0: unknown
    bool stopped = false, killed = false;
    kernel::ListProcesses listed = {};  // returns the node's current processes
  };
  void take_process(std::size_t chain, const Process& process, const std::string& why);
  // Takes the stack of a thread that waits in the kernel, on any node. Returns false if no more stacks are wanted for
  // this fault.
  bool take_waiting(std::size_t chain, std::size_t node, pid_t pid, pid_t tid, const std::string& why);
  // Keeps the root directory of a running process of the node open, so that the node's files can be read when no
  // process is left.
  void note_root(std::size_t node, pid_t pid);

  // The frames of all stacks recorded so far, by chain. `living`: the nodes' current processes. `why`: returns the
  // reason for which the BPF programs recorded a chain's stacks.
  using ByFault = std::map<std::size_t, std::vector<schedule::Stack>>;
  [[nodiscard]] ByFault resolve(const std::vector<std::vector<pid_t>>& living,
                                const std::function<std::size_t(std::size_t)>& node_of,
                                const std::function<std::string(std::size_t)>& why) const;

 private:
  // True if the stack that the caller is about to take is wanted. Counts this stack.
  [[nodiscard]] bool wanted(std::size_t chain);
  using Adjust =
      std::function<void(pid_t tid, symbols::Snapshot& snapshot)>;  // changes the registers before the stack is read
  void take(std::size_t chain, pid_t pid, pid_t tid, const std::string& why, bool stopped,
            std::optional<std::size_t> node = {}, const Adjust& adjust = {});
  void take_running(std::size_t chain, Process& process, pid_t tid, const std::string& why);
  // True if more stacks of this fault are wanted.
  [[nodiscard]] bool more_of(std::size_t chain);
  void ask_python(TakenStack& taken) const;
  void ask_java(pid_t tid, std::string_view maps, TakenStack& taken);
  [[nodiscard]] schedule::Stack resolve_stack(TakenStack taken, std::size_t node, const std::vector<pid_t>& living,
                                              std::int64_t limit_ns) const;

  const Plan& plan_;
  Programs& programs_;
  const jvm::Session* jvms_ = nullptr;
  const python::Session* python_ = nullptr;
  std::mutex asking_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> begun_;  // by chain: number of calls of wanted()
  std::map<std::size_t, std::vector<TakenStack>> taken_;
  std::map<std::size_t, Fd> roots_;  // by node
};

}  // namespace rose::inject
