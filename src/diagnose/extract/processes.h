// Extracts candidates from ends and pauses of processes, and the causes that they are for other failures. Private to
// diagnose.
#pragma once

#include <set>
#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"
#include "diagnose/extract/programs.h"

namespace rose::diagnose {

struct Processes {
  Extracted extracted;
  std::vector<Cause> causes;  // planned stops first, then by node; not by time
  std::set<int> came_back;  // nodes that started again after a crash, although the test deployment would not start them
};

[[nodiscard]] Processes extract_processes(const Given& given, const Facts& facts, const Programs& programs);

// Ends causes at the next sign that the node was running again, if the dump contains no start (it began late, or
// another tool made it): a node that ends again, or whose packets arrive, must have been running, so its end explains
// no later failures.
[[nodiscard]] std::vector<Cause> end_by_signs_of_life(std::vector<Cause> causes, const Given& given,
                                                      const Facts& facts);

}  // namespace rose::diagnose
