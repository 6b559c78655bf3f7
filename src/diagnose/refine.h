// What was found, made simpler by runs at the same rate; then the rate, from runs that chose nothing. Inside this room.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/confirm.h"
#include "diagnose/lead.h"
#include "diagnose/simplify.h"

namespace rose::diagnose {

// The schedule that is reported.
struct Found {
  Lead lead;
  std::optional<Lead> fewest_faults = {};  // as it was when only faults had been taken away
  std::size_t dropped = 0;                 // faults that simplification took away
  std::vector<std::string> changes = {};   // and what else it made simpler
  bool rate_told = false;                  // by runs of its own

  void count_dropped(const Lead& found) { dropped = found.schedule.faults.size() - lead.schedule.faults.size(); }
};

class Refinement {
 public:
  // `runs` outlives it.
  Refinement(const Inputs& inputs, Lab& lab, Confirmation& runs, Diagnosis& diagnosis)
      : inputs_(inputs), options_(inputs.config->diagnose), lab_(lab), runs_(runs), d_(diagnosis) {}

  // `end` is `found` at first.
  [[nodiscard]] Result<void> refine(Found& end, const Lead& found);

 private:
  void drop_needless(Found& end, const Lead& found);
  [[nodiscard]] Result<void> simplify(Found& end, const Lead& found);
  [[nodiscard]] Result<bool> as_good(Lead& simpler, const schedule::Tally& found, bool drops_faults, int until,
                                     const Simplifier& simplifier);
  [[nodiscard]] Result<void> tell_rate(Found& end);

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  Lab& lab_;
  Confirmation& runs_;
  Diagnosis& d_;
};

}  // namespace rose::diagnose
