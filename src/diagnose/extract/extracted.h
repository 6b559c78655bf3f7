// The result type of the stages of extraction. Private to diagnose.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/diagnose.h"
#include "evidence/discards.h"
#include "evidence/facts.h"

namespace rose::diagnose {

struct Extracted {
  std::vector<Candidate> candidates;
  Discards discards;
  std::vector<std::string> notes;
};

// Makes fault ids that are unique within a stage. As the stages use different prefixes, ids of different stages differ,
// too.
class Ids {
 public:
  // Returns `base`, shortened to the length that a schedule allows for ids, and with a number if `base` is already
  // used.
  [[nodiscard]] std::string next(std::string base);

 private:
  std::map<std::string, int> used_;  // by base: the last number
  std::set<std::string> given_;
};

// A candidate for the fault, with `count` events and neutral values of its other properties.
[[nodiscard]] Candidate candidate_of(schedule::Fault fault, std::uint64_t count, std::int64_t ts);
// Sets the properties of a candidate that depend on the origin of its observation. Changes nothing if the kernel
// recorded the observation.
void set_origin(Candidate& candidate, const Origin& origin);
// For a fault that had not ended when the dump was written: adds the second duration to try. A dump that contains the
// start of the workload was recorded in a run and ends with this run, so the fault lasted until the end of the run.
// Therefore the fault is first tried until the end of the run, and afterwards with the observed duration. For other
// dumps, the observed duration is tried first. `longest_ns`: a duration that lasts until the end of any run; 0: a fault
// of this kind lasts until the end of the run if it has no duration.
void add_unended_duration(Candidate& candidate, const Times& times, std::int64_t longest_ns);

}  // namespace rose::diagnose
