// Level 3: where after the context? Crashes that level 2 could place are moved on, call by call: the
// node dies before the 1st, 2nd, ... call that follows the last event of its context. This needs no
// symbols, so it works for interpreted and stripped programs too; offsets inside functions do, and
// are not looked at yet.
#pragma once

#include <memory>

#include "diagnose/proposer.h"

namespace rose::diagnose {

[[nodiscard]] std::unique_ptr<Proposer> make_level3(const SearchContext& context);

}  // namespace rose::diagnose
