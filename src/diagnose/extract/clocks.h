// Extracts clock faults: clocks that were wrong in production, according to the handshakes in the dumps of several
// hosts, and clocks that were set, according to tracers and logs. Private to diagnose.
#pragma once

#include "diagnose/extract/extracted.h"
#include "evidence/facts.h"

namespace rose::diagnose {

[[nodiscard]] Extracted extract_clocks(const Given& given, const Times& times);

}  // namespace rose::diagnose
