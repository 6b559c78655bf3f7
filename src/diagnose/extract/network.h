// Extracts partitions from silences and from calls that fail as unreachable. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/extracted.h"
#include "evidence/causes.h"
#include "evidence/facts.h"

namespace rose::diagnose {

struct Network {
  Extracted extracted;
  Causes causes;  // the causes that were passed, and partitions
};

// `causes`: ends and pauses of processes.
[[nodiscard]] Network extract_network(const Given& given, const Facts& facts, const std::vector<Cause>& causes);

}  // namespace rose::diagnose
