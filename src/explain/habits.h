// What always came of a function, on its thread, and comes no more although the function is entered as ever: it decides otherwise. Rules
// of this kind are mined from traces by Yang, Evans, Bhardwaj, Bhat and Das, "Perracotta: Mining Temporal API Rules from Imperfect
// Traces", ICSE 2006 (a call, then always another one); here sound runs give the rule, and failing runs break it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "explain/compare.h"
#include "explain/runs.h"

namespace rose::explain {

struct Habit {
  std::uint32_t function = 0;  // kinds: who is entered,
  std::uint32_t lacks = 0;     // and what no longer comes of it
  std::size_t times = 0;       // that it did in sound runs
  double weight = 0;           // of the difference that this is, less the further the function is from it
};

// Of what `comparison` says is missing in failing runs. Heaviest first, each function once.
[[nodiscard]] std::vector<Habit> broken_habits(const std::vector<Run>& runs, const Kinds& kinds, const Comparison& comparison);

}  // namespace rose::explain
