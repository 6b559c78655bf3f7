// Exceptions that logs report, as candidates. Private to diagnose.
#pragma once

#include "diagnose/extract/facts.h"
#include "diagnose/extract/sifted.h"

namespace rose::diagnose {

[[nodiscard]] Sifted sift_exceptions(const Given& given, const Times& times);

}  // namespace rose::diagnose
