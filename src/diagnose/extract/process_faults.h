// Turns ends and pauses of processes into candidates and causes. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"

namespace rose::diagnose {

using ByNode = std::vector<std::vector<ProcessEvent>>;  // by node: its events by time

// The ends, or the pauses, of one node.
struct ProcessFaults {
  Extracted extracted;
  std::vector<Cause> causes;  // these ends or pauses, to explain other failures
  bool came_back = false;     // it started again after a crash, although the test deployment would not start it
};

// One result for each node. `ends`, `events`: by node.
[[nodiscard]] std::vector<ProcessFaults> crash_faults(const Given& given, const Facts& facts, ByNode ends);
[[nodiscard]] std::vector<ProcessFaults> pause_faults(const Given& given, const Facts& facts, const ByNode& events);

}  // namespace rose::diagnose
