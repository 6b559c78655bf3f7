// Classifies silences between nodes. Silences without an explanation become network faults.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "evidence/causes.h"
#include "evidence/discards.h"
#include "evidence/facts.h"
#include "evidence/network.h"

namespace rose::evidence {

struct SortedSilences {
  std::vector<Silence> unexplained;
  // These silences are longer than all silences of the same two nodes and service that ended during fault-free runs.
  // But one such silence lasted until the end of its run, so long silences may be normal.
  std::vector<Silence> idle;
  // These silences began when all other activity of their nodes ended, and lasted until the end of the dump.
  std::vector<Silence> with_all_else;
  std::map<std::size_t, std::vector<Silence>> explained;  // by the index of the cause in `causes`
  Discards discards;
};

[[nodiscard]] SortedSilences sort_silences(const Given& given, const Facts& facts, const std::vector<Cause>& causes);

}  // namespace rose::evidence
