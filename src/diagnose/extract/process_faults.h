// Turns ends and pauses of processes into candidates and causes. Private to diagnose.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "diagnose/extract/extracted.h"
#include "evidence/causes.h"
#include "evidence/facts.h"

namespace rose::diagnose {

using ByNode = std::vector<std::vector<ProcessEvent>>;  // by node: the events of the node, by time

// The faults that follow from the ends, or from the pauses, of one node's processes.
struct ProcessFaults {
  Extracted extracted;
  std::vector<Cause> causes;  // the same ends or pauses, which may explain other failures
  bool came_back = false;     // the node started again after a crash, although the test deployment would not start it
};

// One result for each node. `ends`, `events`: by node.
[[nodiscard]] std::vector<ProcessFaults> crash_faults(const Given& given, const Facts& facts, ByNode ends);
[[nodiscard]] std::vector<ProcessFaults> pause_faults(const Given& given, const Facts& facts, const ByNode& events);

// Merges ends or pauses that occur many times without harm (kUsualTimes) into one candidate, the last one, which is
// closest to the failure. `alike`: for each kind, the indexes of its candidates by time. `did`: for people, "ended" or
// "stood still".
[[nodiscard]] std::vector<Candidate> fold_usual(std::vector<Candidate> candidates,
                                                const std::vector<std::vector<std::size_t>>& alike,
                                                std::string_view did, const Times& times, std::int64_t longest_ns);

}  // namespace rose::diagnose
