// Extracts candidates from failed calls, after removing those that also occur in fault-free runs. Private to diagnose.
#pragma once

#include "diagnose/extract/causes.h"
#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"
#include "diagnose/extract/programs.h"

namespace rose::diagnose {

struct ExtractedCalls : Extracted {
  std::vector<Candidate> disks;  // full disks that would explain short writes
};

// `causes`: events that may explain failed calls.
[[nodiscard]] ExtractedCalls extract_calls(const Given& given, const Facts& facts, const Programs& programs,
                                           const Causes& causes);

}  // namespace rose::diagnose
