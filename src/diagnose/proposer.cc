#include "diagnose/proposer.h"

#include "diagnose/level1.h"
#include "diagnose/level2.h"
#include "diagnose/level3.h"

namespace rose::diagnose {

std::unique_ptr<Proposer> make_proposer(int level, const SearchContext& context) {
  ROSE_ASSERT(level >= 1 && level <= 3);
  return level == 1 ? make_level1(context) : level == 2 ? make_level2(context) : make_level3(context);
}

}  // namespace rose::diagnose
