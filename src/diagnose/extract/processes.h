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

// Limits how long ends of nodes explain failures, where the dump shows no start afterwards (it began late, or another
// tool made it): until the next sign that the node was running. A node that ends again, or whose packets arrive, must
// have been started in between.
[[nodiscard]] std::vector<Cause> end_by_signs_of_life(std::vector<Cause> causes, const Given& given,
                                                      const Facts& facts);

}  // namespace rose::diagnose
