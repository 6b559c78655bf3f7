#include "diagnose/proposer.h"

#include "diagnose/level1.h"

namespace rose::diagnose {

bool has_level(int level) { return level == 1; }

std::unique_ptr<Proposer> make_proposer(int level, const SearchContext& context) {
  return level == 1 ? make_level1(context) : nullptr;
}

}  // namespace rose::diagnose
