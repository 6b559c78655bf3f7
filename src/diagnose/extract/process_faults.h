// Ends and pauses of processes as candidates, one for each time. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"

namespace rose::diagnose {

using ByNode = std::vector<std::vector<ProcessEvent>>;  // each by time

// The faults of one node.
struct ProcessFaults {
  Extracted extracted;
  std::vector<Cause> causes;  // that they are
  bool came_back = false;     // after a crash, though nothing in the test deployment would start it again
};

// One for each node.
[[nodiscard]] std::vector<ProcessFaults> crash_faults(const Given& given, const Facts& facts, ByNode ends);
[[nodiscard]] std::vector<ProcessFaults> pause_faults(const Given& given, const Facts& facts, const ByNode& events);

}  // namespace rose::diagnose
