// Level 3: where after the context? Crashes and pauses that level 2 could place are moved on in two ways, by turns: to
// the places inside the last function of the context (system calls first, then other calls, then the rest), and to the
// 1st, 2nd, ... call that follows the last event of the context, which needs no symbols and so works for interpreted
// and stripped programs too.
#pragma once

#include <memory>

#include "diagnose/proposer.h"

namespace rose::diagnose {

[[nodiscard]] std::unique_ptr<Proposer> make_level3(const SearchContext& context);

}  // namespace rose::diagnose
