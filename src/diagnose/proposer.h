// One level of the search: proposes schedules one at a time and learns from what each run showed.
// The loop in search.cc makes the runs, confirms hits and keeps the budget; it knows no level by name.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

struct Proposal {
  schedule::Schedule schedule;
  std::string why;       // "all process and network faults, as they were seen"
  bool again = false;    // a second try of a schedule that missed: a miss is no proof
};

class Proposer {
 public:
  virtual ~Proposer() = default;
  [[nodiscard]] virtual std::optional<Proposal> next() = 0;
  virtual void learn(const Proposal& proposal, const schedule::RunResult& result) = 0;
};

// Everything a level may look at; outlives the proposer.
struct SearchContext {
  const Inputs* inputs = nullptr;
  const Plan* plan = nullptr;
};

// nullptr: there is no such level.
[[nodiscard]] std::unique_ptr<Proposer> make_proposer(int level, const SearchContext& context);
// Levels that make_proposer knows.
[[nodiscard]] bool has_level(int level);

}  // namespace rose::diagnose
