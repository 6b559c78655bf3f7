// Resources that were exhausted or slow, according to logs. Private to diagnose.
#pragma once

#include "diagnose/extract/given.h"
#include "diagnose/extract/sifted.h"

namespace rose::diagnose {

[[nodiscard]] Sifted sift_limits(const Given& given);

}  // namespace rose::diagnose
