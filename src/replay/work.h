// Whether a run did its work: finds reasons to doubt any verdict, regardless of the oracle. Pure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/config.h"
#include "observe/exchange.h"
#include "profile/profile.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::replay {

// The workload of a run.
struct Work {
  bool failed = false;                          // it ended by itself, with another status than 0 or by a signal
  std::string note;                             // how it ended: "exited with status 1"
  std::int64_t ended_ns = 0;                    // since it began
  std::optional<observe::Exchanged> exchanged;  // with the nodes; nothing: not known, as in host networks
};

// True if some data came back; if fault-free runs never receive any, if some was sent.
[[nodiscard]] bool exchanged_data(const observe::Exchanged& exchanged,
                                  const std::optional<profile::WorkloadUse>& usual);

// Why a run with planned faults does not count; "" if it does. A workload that failed before any fault fired would have
// failed without faults. One that exchanged no data with the nodes, although it does in fault-free runs, did not
// exercise the system. If the behaviour of fault-free runs is unknown, a workload that failed and exchanged nothing
// does not count either, unless the bug was reproduced.
[[nodiscard]] std::string doubt_of(const Work& work, const std::optional<profile::WorkloadUse>& usual,
                                   const schedule::Schedule& schedule, const schedule::RunResult& result);

// Reports that the disk with a run's files is full: the output of nodes, workload and oracle may be truncated. "" if
// there is space.
[[nodiscard]] std::string full_disk(const std::filesystem::path& run_dir);

// What the workload does in fault-free runs: from this profile, or from profile.json beside the configuration if there
// is one. Nothing if neither is available.
[[nodiscard]] Result<std::optional<profile::WorkloadUse>> usual_work(const config::Config& config,
                                                                     const std::string& profile);

}  // namespace rose::replay
