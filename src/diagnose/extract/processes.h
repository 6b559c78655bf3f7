// Ends and pauses of processes: which of them are faults, and what these explain. Private to diagnose.
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
  std::vector<Cause> causes;  // unordered: planned stops first, then those of each node
  std::set<int>
      came_back;  // nodes that started again after a crash, although nothing in the test deployment would restart them
};

[[nodiscard]] Processes extract_processes(const Given& given, const Facts& facts, const Programs& programs);

// A dump that began late, or was made by another tool, may lack starts. But a node that ends again, or whose packets
// arrive, must have been running: failures in between are not explained by its end.
[[nodiscard]] std::vector<Cause> end_by_signs_of_life(std::vector<Cause> causes, const Given& given,
                                                      const Facts& facts);

}  // namespace rose::diagnose
