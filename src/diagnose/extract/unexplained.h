// Nodes that ended themselves, where nothing in the dump tells why: what they used last may have failed them in a way
// that no event shows. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/facts.h"
#include "diagnose/extract/sifted.h"

namespace rose::diagnose {

// The disk, the files, the descriptors, the memory and the peer that each of them used last, as guesses. `ends`: ends
// and pauses of processes, after explain_own_ends().
[[nodiscard]] Sifted suspect_last_used(const Given& given, const Facts& facts, const std::vector<Candidate>& ends);

}  // namespace rose::diagnose
