// Whether a run did its work: finds reasons to doubt any verdict, regardless of the oracle. Pure,
// except for full_disk(), usual_of() and MemoryKills.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "config/config.h"
#include "observe/exchange.h"
#include "profile/profile.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::replay {

// The workload of a run.
struct Work {
  bool failed = false;  // it ended by itself, with another status than 0 or by a signal
  bool timed_out = false;
  std::string note;                             // how it ended: "exited with status 1"
  std::int64_t ended_ns = 0;                    // since it began
  std::optional<observe::Exchanged> exchanged;  // with the nodes; nothing: not known, as in host networks
};

// An unplanned end of a node.
struct NodeEnd {
  std::string node;
  bool signalled = false;
  bool out_of_memory = false;  // the kernel killed it for lack of memory
  int code = 0;                // exit status or signal number
  std::string note;            // "exited with status 7"
  std::int64_t ended_ns = 0;   // since the workload began; negative: before
};

// What is known after a run about its nodes.
struct NodeEnds {
  std::vector<NodeEnd> ends;   // by time
  std::set<std::string> down;  // nodes that did not run when the workload had ended
};

// What fault-free runs do, as far as it is known from a profile.
struct Usual {
  std::optional<profile::WorkloadUse> work;
  std::vector<profile::ProcessKind> processes;
};
[[nodiscard]] Usual usual_of(const profile::Profile& profile);

// True if the workload received data, or only sent some if it never receives any in fault-free runs.
[[nodiscard]] bool exchanged_data(const observe::Exchanged& exchanged,
                                  const std::optional<profile::WorkloadUse>& usual);

// Why a run with planned faults does not count; "" if it does. A workload that failed before any fault fired would have
// failed without faults. One that exchanged no data with the nodes, although it does in fault-free runs, did not
// exercise the system. If the behaviour of fault-free runs is unknown, a workload that failed or timed out and
// exchanged nothing does not count either, unless the bug was reproduced.
[[nodiscard]] std::string doubt_of(const Work& work, const std::optional<profile::WorkloadUse>& usual,
                                   const schedule::Schedule& schedule, const schedule::RunResult& result);

// Why a run with planned faults in which the oracle found nothing does not count, because of its nodes; "" if it
// counts. There are two reasons, unless the same happens in fault-free runs:
// - A node that failed by itself before any fault fired, and was down at the end, was not tested: its program cannot be
//   started, or lacks a file. An end with status 0, or by a signal that workloads send (SIGKILL, SIGTERM, SIGINT),
//   may be intended.
// - A node that the kernel killed for lack of memory was not ended by a fault.
[[nodiscard]] std::string doubt_of(const NodeEnds& nodes, const Usual& usual, const schedule::Schedule& schedule,
                                   const schedule::RunResult& result);

// Reports that the disk with a run's files is full now: the output of nodes, workload and oracle may be truncated. ""
// if there is space.
[[nodiscard]] std::string full_disk(const std::filesystem::path& run_dir);

// Reads the file `profile`, or profile.json beside the configuration if `profile` is empty and that file exists.
[[nodiscard]] Result<Usual> usual_of(const config::Config& config, const std::string& profile);

// The processes that the kernel kills for lack of memory from now on, as it reports them in its log.
class MemoryKills {
 public:
  MemoryKills();
  // Their ids. None if this process may not read the kernel's log, or if the kernel has overwritten the messages.
  [[nodiscard]] std::set<pid_t> pids() const;

 private:
  Fd log_;
};
// The id in a record of the kernel's log that reports such a process; nothing for other records.
[[nodiscard]] std::optional<pid_t> killed_for_memory(std::string_view record);

}  // namespace rose::replay
