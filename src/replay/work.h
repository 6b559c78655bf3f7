// Determines whether a run did its work: finds reasons to doubt any verdict, whatever the oracle answered. Pure, except
// for DiskWatch, call_on_full_disk(), usual_of() and MemoryKills.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "config/config.h"
#include "observe/exchange.h"
#include "profile/profile.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"
#include "trace/event.h"

namespace rose::replay {

// The workload of a run.
struct Work {
  bool failed = false;  // the workload ended by itself, with a status other than 0, or by a signal
  bool timed_out = false;
  std::string note;           // how the workload ended: "exited with status 1"
  std::int64_t ended_ns = 0;  // time from its start to its end
  // what it exchanged with the nodes; nothing: not known, as in host networks
  std::optional<observe::Exchanged> exchanged;
};

// An unplanned end of a node.
struct NodeEnd {
  std::string node;
  bool signalled = false;
  bool out_of_memory = false;  // the kernel killed the node for lack of memory
  int code = 0;                // exit status or signal number
  std::string note;            // how the node ended: "exited with status 7"
  std::int64_t ended_ns = 0;   // time at which it ended, since the workload began; negative: before
};

// What is known after a run about its nodes.
struct NodeEnds {
  std::vector<NodeEnd> ends;   // by time
  std::set<std::string> down;  // nodes that were not running when the workload had ended
};

// What runs without faults do, as far as a profile shows it.
struct Usual {
  std::optional<profile::WorkloadUse> work;
  std::vector<profile::ProcessKind> processes;
};
[[nodiscard]] Usual usual_of(const profile::Profile& profile);

// True if the workload received data. If it never receives data in runs without faults, true if it sent some.
[[nodiscard]] bool exchanged_data(const observe::Exchanged& exchanged,
                                  const std::optional<profile::WorkloadUse>& usual);

// The reason why a run with planned faults does not count; "" if it counts. A workload that failed before any fault
// fired would have failed without faults. A workload that exchanges data with the nodes in runs without faults, but not
// in this run, did not exercise the system. If it is unknown what runs without faults do, a run that did not reproduce
// the bug does not count, either, if its workload failed or timed out and exchanged nothing.
[[nodiscard]] std::string doubt_of(const Work& work, const std::optional<profile::WorkloadUse>& usual,
                                   const schedule::Schedule& schedule, const schedule::RunResult& result);

// The reason why the ends of its nodes make a run with planned faults not count; "" if it counts. Only for a run in
// which the oracle found nothing. There are two reasons; neither applies if the same happens in runs without faults:
// - A node that failed by itself before any fault fired, and was down at the end, was not tested: its program cannot be
//   started, or lacks a file. An end with status 0, or by a signal that workloads send (SIGKILL, SIGTERM, SIGINT),
//   may be intended.
// - A node that the kernel killed for lack of memory was not ended by a fault.
[[nodiscard]] std::string doubt_of(const NodeEnds& nodes, const Usual& usual, const schedule::Schedule& schedule,
                                   const schedule::RunResult& result);

// Reports that the disk with a run's files is or was full: the output of nodes, workload and oracle may be truncated.
// One look at the end would not be enough: the disk may have room again by then, although output was lost before.
// Assumptions: a look takes about a microsecond, and less than 256 MiB are written in 10 ms (25 GiB/s). Goal: a disk
// that is full for a millisecond is seen, and the looks cost no noticeable time. Therefore a thread looks every 10 ms
// while there is more room than 256 MiB, and otherwise every millisecond.
class DiskWatch {
 public:
  explicit DiskWatch(std::filesystem::path run_dir);
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;
  ~DiskWatch();
  // The reason to doubt the run; "" if there was always room, and is now.
  [[nodiscard]] std::string seen();

 private:
  void look();
  const std::filesystem::path run_dir_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::string full_;
  std::chrono::milliseconds pause_{1};
  std::thread thread_;
};

// Finds, in the trace of a run, that the disk was full for a shorter time than DiskWatch can notice: a call of a node
// failed because the disk had no room, or because the quota of the node's user was used up. Returns a doubt, as
// DiskWatch::seen() does.
//
// Only calls that write or create something on the file system of `run_dir` count. Other calls fail with ENOSPC for
// other reasons (inotify_add_watch; fallocate for a size that the disk never had). Nodes to which a fault of `schedule`
// gives such an error or a full disk do not count. Neither do containers, whose paths differ from those of this
// machine.
[[nodiscard]] std::string call_on_full_disk(const trace::Trace& trace, const config::Config& config,
                                            const schedule::Schedule& schedule, const std::filesystem::path& run_dir);

// Reads the file `profile`. If `profile` is empty, reads profile.json beside the configuration, if it exists.
[[nodiscard]] Result<Usual> usual_of(const config::Config& config, const std::string& profile);

// The processes that the kernel kills for lack of memory from now on. The kernel reports them in its log.
class MemoryKills {
 public:
  MemoryKills();
  // The ids of these processes. Empty if this process may not read the kernel's log, or if the kernel has overwritten
  // the messages.
  [[nodiscard]] std::set<pid_t> pids() const;

 private:
  Fd log_;
};
// The process id in a record of the kernel's log that reports such a kill. Nothing for other records.
[[nodiscard]] std::optional<pid_t> killed_for_memory(std::string_view record);

}  // namespace rose::replay
