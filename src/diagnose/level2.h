// Level 2: what happened before? For failed calls the nth matching one; for crashes, pauses and partitions the paper's
// algorithm 1 over what the node did before them, for the first two with amplification to the other nodes.
#pragma once

#include <memory>

#include "diagnose/proposer.h"

namespace rose::diagnose {

[[nodiscard]] std::unique_ptr<Proposer> make_level2(const SearchContext& context);

}  // namespace rose::diagnose
