// What the network did: its partitions, from silences and from calls that fail as unreachable. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/facts.h"
#include "diagnose/extract/sifted.h"

namespace rose::diagnose {

struct Network {
  Sifted sifted;
  Causes causes;  // the given causes, and partitions
};

// `causes`: what processes did.
[[nodiscard]] Network sift_network(const Given& given, const Facts& facts, const std::vector<Cause>& causes);

}  // namespace rose::diagnose
