// Makes guesses for nodes that ended themselves without a recorded reason: something that they used last may have
// failed in a way that no event records. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/extracted.h"
#include "evidence/facts.h"

namespace rose::diagnose {

// Returns guesses about the disk, files, descriptors, memory and peer that each such node used last. `ends`: ends and
// pauses of processes, after explain_own_ends().
[[nodiscard]] Extracted suspect_last_used(const Given& given, const Facts& facts, const std::vector<Candidate>& ends);

}  // namespace rose::diagnose
