// Silences between nodes: which of them are network faults, and which something else explains. Private to diagnose.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"
#include "diagnose/network.h"

namespace rose::diagnose {

struct SortedSilences {
  std::vector<Silence> unexplained;
  std::vector<Silence> idle;  // longer than a fault-free run, which had them to its end
  // lasting to the end of the dump, together with all other activity of these nodes
  std::vector<Silence> with_all_else;
  std::map<std::size_t, std::vector<Silence>> explained;  // by the index of the cause in `causes`
  Discards discards;
};

[[nodiscard]] SortedSilences sort_silences(const Given& given, const Facts& facts, const std::vector<Cause>& causes);

}  // namespace rose::diagnose
