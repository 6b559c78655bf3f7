// Simplifies the found schedule by runs, tries its rivals, and then makes the final test: does the reported schedule
// reach the target? The runs of that test influenced no choice, so they give its rate. Private to diagnose.
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
  std::optional<Lead> fewest_faults = {};  // the form after only faults had been removed
  std::size_t dropped = 0;                 // faults that simplification took away
  std::vector<std::string> changes = {};   // and what else it made simpler
  schedule::Tally confirmed = {};          // of the runs that confirmed the found one
  bool decided = false;                    // whether it reaches the target; before, its runs only speak for it
  bool rate_measured = false;              // by runs of its own, not by those that confirmed it

  void count_dropped(const Lead& found) { dropped = found.schedule.faults.size() - lead.schedule.faults.size(); }
};

class Refinement {
 public:
  // `runs` and `world` outlive it.
  Refinement(const Inputs& inputs, const World& world, Lab& lab, Confirmation& runs, Diagnosis& diagnosis)
      : inputs_(inputs), options_(inputs.config->diagnose), world_(world), lab_(lab), runs_(runs), d_(diagnosis) {}

  // `end` is `found` at first. If `found` was promising, or is already accepted, `end` is what was chosen.
  [[nodiscard]] Result<void> refine(Found& end, const Lead& found);
  // If nothing in the found schedule is certain and a certain candidate was not tried, tries that alone. If it
  // reproduces the bug as well, it replaces `found`, and what was found becomes its rival.
  [[nodiscard]] Result<void> prefer_certain(Lead& found);

 private:
  void drop_unneeded(Found& end, const Lead& found);
  [[nodiscard]] Result<void> simplify(Found& end, const Lead& found);
  [[nodiscard]] Result<bool> as_good(Lead& simpler, const schedule::Tally& found, bool drops_faults, int until,
                                     const Simplifier& simplifier);
  [[nodiscard]] Result<void> try_rivals(const Lead& end, const Lead& found);
  // A few runs of the schedule: does it reproduce the bug, and how often?
  [[nodiscard]] Result<void> try_rival(const Schedule& schedule, int level, std::string why, int until);
  [[nodiscard]] Result<void> decide(Found& end, const Lead& found);
  [[nodiscard]] Result<void> measure(Found& end, const Lead& found);
  // The same for a schedule that a test accepted in spite of misses; may revoke the acceptance.
  [[nodiscard]] Result<void> measure_accepted(Found& end);

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  const World& world_;
  Lab& lab_;
  Confirmation& runs_;
  Diagnosis& d_;
};

}  // namespace rose::diagnose
