#include "diagnose/proposer.h"

#include "diagnose/level1.h"
#include "diagnose/level2.h"
#include "diagnose/level3.h"

namespace rose::diagnose {

bool has_level(int level) { return level >= 1 && level <= 3; }

std::unique_ptr<Proposer> make_proposer(int level, const SearchContext& context) {
  switch (level) {
    case 1: return make_level1(context);
    case 2: return make_level2(context);
    case 3: return make_level3(context);
    default: return nullptr;
  }
}

}  // namespace rose::diagnose
