// What the network did: its partitions, from silences and from calls that fail as unreachable. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"

namespace rose::diagnose {

struct Network {
  Extracted extracted;
  Causes causes;  // the given causes, and partitions
};

// `causes`: what processes did.
[[nodiscard]] Network extract_network(const Given& given, const Facts& facts, const std::vector<Cause>& causes);

}  // namespace rose::diagnose
