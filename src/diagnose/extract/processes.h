// What processes did: which of their ends and pauses are faults, and what these explain. Private to diagnose.
#pragma once

#include <set>
#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/facts.h"
#include "diagnose/extract/programs.h"
#include "diagnose/extract/sifted.h"

namespace rose::diagnose {

struct Processes {
  Sifted sifted;
  std::vector<Cause> causes;  // in no order: planned stops, then those of one node after the other
  std::set<int>
      came_back;  // nodes that did so after a crash, though nothing in the test deployment would start them again
};

[[nodiscard]] Processes sift_processes(const Given& given, const Facts& facts, const Programs& programs);

// A dump that began late, or of another tool, has no starts. But a node that ends once more, or whose packets arrive,
// was there again: what it did in between is not explained by its end any more.
[[nodiscard]] std::vector<Cause> end_by_signs_of_life(std::vector<Cause> causes, const Given& given,
                                                      const Facts& facts);

}  // namespace rose::diagnose
