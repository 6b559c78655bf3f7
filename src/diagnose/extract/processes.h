// Extracts candidates from ends and pauses of processes, and returns the same events as causes, which may explain other
// failures. Private to diagnose.
#pragma once

#include <set>
#include <vector>

#include "diagnose/extract/extracted.h"
#include "evidence/causes.h"
#include "evidence/facts.h"
#include "evidence/programs.h"
#include "evidence/signs_of_life.h"

namespace rose::diagnose {

struct Processes {
  Extracted extracted;
  std::vector<Cause> causes;  // planned stops first, then by node; not by time
  std::set<int> came_back;  // nodes that started again after a crash, although the test deployment would not start them
};

[[nodiscard]] Processes extract_processes(const Given& given, const Facts& facts, const Programs& programs);

}  // namespace rose::diagnose
