#include "diagnose/proposer.h"

#include "diagnose/level1.h"
#include "diagnose/level2.h"

namespace rose::diagnose {

bool has_level(int level) { return level == 1 || level == 2; }

std::unique_ptr<Proposer> make_proposer(int level, const SearchContext& context) {
  switch (level) {
    case 1: return make_level1(context);
    case 2: return make_level2(context);
    default: return nullptr;
  }
}

}  // namespace rose::diagnose
