// Failed calls: separates those that also occur in healthy runs from the others. Private to diagnose.
#pragma once

#include "diagnose/extract/causes.h"
#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"
#include "diagnose/extract/programs.h"

namespace rose::diagnose {

// `causes` explain some of them.
struct ExtractedCalls : Extracted {
  std::vector<Candidate> disks;  // full disks that explain short writes
};

[[nodiscard]] ExtractedCalls extract_calls(const Given& given, const Facts& facts, const Programs& programs,
                                           const Causes& causes);

}  // namespace rose::diagnose
