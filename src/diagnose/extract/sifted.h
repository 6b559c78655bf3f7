// What a stage of extraction makes of its part of the dumps. Private to diagnose.
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

// Events that are no candidates, and why not.
class Discards {
 public:
  void add(std::string_view why, std::uint64_t events);
  void add(const Discards& others);
  // For events of a host that plays no node; "" if the host is unknown.
  void add_stranger(const std::string& host, std::uint64_t events);
  // The most events first.
  [[nodiscard]] std::vector<Discarded> list() const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> events_;
};

struct Sifted {
  std::vector<Candidate> candidates;
  Discards discards;
  std::vector<std::string> notes;
};

// Names of faults, no two of them alike. The names of two stages begin differently.
class Ids {
 public:
  // Short enough for the schedule's file form, whatever the node is called.
  [[nodiscard]] std::string next(std::string base);

 private:
  std::map<std::string, int> used_;  // of each base
  std::set<std::string> given_;
};

// A candidate for this fault, whose other properties have their plainest values.
[[nodiscard]] Candidate candidate_of(schedule::Fault fault, std::uint64_t count, std::int64_t ts);
// Tells of the message behind a candidate, and believes it as far as the message goes; nullptr: there is none.
void from_log(Candidate& candidate, const Said::Of* said);
// It was not over when the dump was written. A dump of a whole run ends with it: so to its end first, else as long as
// was seen. `longest_ns`: what a run does not last longer than; 0: the fault needs no duration.
void still_so(Candidate& candidate, const Times& times, std::int64_t longest_ns);

}  // namespace rose::diagnose
