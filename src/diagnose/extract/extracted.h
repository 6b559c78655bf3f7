// The result that a stage of extraction returns for its part of the dumps. Private to diagnose.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

struct Times;

// Events that are not candidates, with the reason.
class Discards {
 public:
  void add(std::string_view why, std::uint64_t events);
  void add(const Discards& others);
  // For events of a host that is none of the nodes; "" if the host is unknown.
  void add_unmatched(const std::string& host, std::uint64_t events);
  // Those with the most events first.
  [[nodiscard]] std::vector<Discarded> list() const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> events_;
};

struct Extracted {
  std::vector<Candidate> candidates;
  Discards discards;
  std::vector<std::string> notes;
};

// Unique names of faults. The names of two stages begin differently.
class Ids {
 public:
  // Short enough for the schedule's file form, whatever the node is called.
  [[nodiscard]] std::string next(std::string base);

 private:
  std::map<std::string, int> used_;  // of each base
  std::set<std::string> given_;
};

// A candidate for this fault; its other properties have neutral values.
[[nodiscard]] Candidate candidate_of(schedule::Fault fault, std::uint64_t count, std::int64_t ts);
// Adds the message behind a candidate, and lowers its weight to the message's certainty; nullptr: there is no message.
void from_log(Candidate& candidate, const LogEvidence::OfEvent* evidence);
// For a fault that had not ended when the dump was written. A dump of a whole run ends with the run, so the first
// duration tried is to the end of the run, then the observed one. `longest_ns`: the longest that a run lasts; 0: the
// fault needs no duration.
void add_unended_duration(Candidate& candidate, const Times& times, std::int64_t longest_ns);

}  // namespace rose::diagnose
