// What a run shows besides the oracle's word: symptoms of the dump that come back make a miss promising.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "diagnose/proposer.h"

namespace rose::diagnose {

[[nodiscard]] const schedule::FaultOutcome* outcome_of(const schedule::RunResult& result, std::string_view id);

inline constexpr std::size_t kMostSecondTries = 4;  // of a level

// Misses worth another run: a miss is no proof (paper, section 8).
class Promising {
 public:
  explicit Promising(const Plan& plan);
  // How many of the dump's symptoms the run's trace shows.
  [[nodiscard]] int score(const trace::Trace& trace) const;
  void add(const Proposal& proposal, int score) { misses_.push_back({score, proposal}); }
  // The best `most` of them, as second tries; forgets all.
  [[nodiscard]] std::vector<Proposal> take(std::size_t most);

 private:
  struct Miss {
    int score = 0;
    Proposal proposal;
  };
  std::set<std::string> symptoms_;
  std::vector<Miss> misses_;
};

}  // namespace rose::diagnose
