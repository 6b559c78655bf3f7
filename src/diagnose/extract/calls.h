// Extracts candidates from failed calls, after removing those that also occur in fault-free runs. Private to diagnose.
#pragma once

#include "diagnose/extract/extracted.h"
#include "evidence/causes.h"
#include "evidence/facts.h"
#include "evidence/programs.h"

namespace rose::diagnose {

struct ExtractedCalls : Extracted {
  std::vector<Candidate> disks;  // full disks that would explain short writes
};

// `causes`: events that may explain failed calls.
[[nodiscard]] ExtractedCalls extract_calls(const Given& given, const Facts& facts, const Programs& programs,
                                           const Causes& causes);

}  // namespace rose::diagnose
