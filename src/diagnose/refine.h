// Simplifies the found schedule by runs, tries its rivals, and makes the final test, which decides whether the reported
// schedule reaches the target. The runs of that test influence no earlier choice, so they give an unbiased rate.
// Private to diagnose.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diagnose/confirm.h"
#include "diagnose/lead.h"
#include "diagnose/move.h"
#include "diagnose/simplify.h"

namespace rose::diagnose {

// The schedule that is reported.
struct Found {
  Lead lead;
  std::optional<Lead> fewest_faults = {};  // the last form from which only faults had been removed
  std::size_t dropped = 0;                 // number of faults that simplification removed
  std::vector<std::string> changes = {};   // for people: the other simplifications
  schedule::Tally confirmed = {};          // outcomes of the runs that confirmed the found schedule
  bool decided = false;                    // the final test has been made
  bool rate_measured = false;              // the rate of `lead` comes from runs that were made to measure it

  void count_dropped(const Lead& found) { dropped = found.schedule.faults.size() - lead.schedule.faults.size(); }
};

class Refinement {
 public:
  // All arguments must outlive the object.
  Refinement(const Inputs& inputs, const World& world, Lab& lab, Confirmation& runs, Diagnosis& diagnosis)
      : inputs_(inputs), options_(inputs.config->diagnose), world_(world), lab_(lab), runs_(runs), d_(diagnosis) {}

  // Sets `end`, which is `found` at first, to the schedule that is reported.
  [[nodiscard]] Result<void> refine(Found& end, const Lead& found);
  // If no fault of `found` is certain, tries certain candidates alone that were not tried yet. If one of them also
  // reproduces the bug, it replaces `found`, which becomes its rival.
  [[nodiscard]] Result<void> prefer_certain(Lead& found);

 private:
  void drop_unneeded(Found& end, const Lead& found);
  [[nodiscard]] Result<void> simplify(Found& end, const Lead& found);
  [[nodiscard]] Result<bool> as_good(Lead& simpler, const Lead& found, const Simplifier::Idea& idea, int until,
                                     const Simplifier& simplifier);
  [[nodiscard]] Result<void> try_rivals(const Lead& end, const Lead& found);
  struct OtherHypothesis {
    Schedule schedule;
    int level = 1;
    std::string why;
  };
  // Makes a few runs of each hypothesis in `others`, to see whether it reproduces the bug as reliably as the found
  // schedule `end`.
  [[nodiscard]] Result<void> try_each(const std::vector<OtherHypothesis>& others, const Lead& end, int until);
  [[nodiscard]] Result<void> decide(Found& end, const Lead& found);
  [[nodiscard]] Result<void> measure(Found& end, const Lead& found);
  // Measures the rate of a schedule that the test accepted in spite of misses; may revoke the acceptance.
  [[nodiscard]] Result<void> measure_accepted(Found& end);

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  const World& world_;
  Lab& lab_;
  Confirmation& runs_;
  Diagnosis& d_;
};

}  // namespace rose::diagnose
