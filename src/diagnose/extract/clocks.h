// Clocks that were wrong in production: what the handshakes in the dumps of several hosts say of each other. And clocks
// that were set: what tracers saw, and logs tell. Private to diagnose.
#pragma once

#include "diagnose/extract/facts.h"
#include "diagnose/extract/sifted.h"

namespace rose::diagnose {

[[nodiscard]] Sifted sift_clocks(const Given& given, const Times& times);

}  // namespace rose::diagnose
