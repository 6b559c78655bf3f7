// Nodes that ended themselves for no reason that the dump shows: something that they used last may have failed in a way
// that no event records. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"

namespace rose::diagnose {

// The disk, files, descriptors, memory and peer that each of them used last, as guesses. `ends`: ends and pauses of
// processes, after explain_own_ends().
[[nodiscard]] Extracted suspect_last_used(const Given& given, const Facts& facts, const std::vector<Candidate>& ends);

}  // namespace rose::diagnose
