#include "evidence/evidence.h"

#include <algorithm>

namespace rose::evidence {

bool Evidence::recorded() const {
  return std::any_of(sources.begin(), sources.end(), [](const Source& source) { return source.complete; });
}

bool Evidence::reported() const {
  return std::any_of(sources.begin(), sources.end(), [](const Source& source) { return !source.complete; });
}

}  // namespace rose::evidence
