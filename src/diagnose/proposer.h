// One level of the search: proposes schedules and learns from what each run showed. The loop in
// search.cc makes the runs, confirms hits and keeps the budget; it knows no level by name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

struct Proposal {
  schedule::Schedule schedule;
  std::string why;       // "all process and network faults, as they were seen"
  bool again = false;    // a second try of a schedule that missed: a miss is no proof
  bool look = false;     // it only counts; that its faults do not fire is meant so
};

class Proposer {
 public:
  virtual ~Proposer() = default;
  [[nodiscard]] virtual std::optional<Proposal> next() = 0;
  // Told of every proposal, in the order in which they were made. Of a schedule that ran before, what
  // that run showed, without its trace: it is not run again (but for `again`).
  virtual void learn(const Proposal& proposal, const schedule::RunResult& result) = 0;
  // May next() be asked before learn() was told of the last proposal? Such proposals run side by side.
  [[nodiscard]] virtual bool goes_on() const { return false; }
  // What the level left out in this search; "" when nothing.
  [[nodiscard]] virtual std::string left_out() const { return {}; }
};

// What later levels may know of a run that was made.
struct PastRun {
  int level = 1;
  schedule::Schedule schedule;
  schedule::OracleAnswer oracle = schedule::OracleAnswer::unknown;
  std::vector<schedule::FaultOutcome> faults;
};

// A context that level 2 saw met: the fault came, the bug did not (or not often enough). Level 3 goes on from there.
struct ReachedContext {
  schedule::Schedule schedule;
  std::string fired;       // the fault, or the alternative of it, that came
  int signs = 0;           // symptoms of the dump that the run showed too
  bool order_kept = true;  // what the node did before was what it did in production
  std::string moment;      // equal ones came at the same moment of the script that the node follows; "" unknown
};

// Everything a level may look at; outlives the proposer.
struct SearchContext {
  const Inputs* inputs = nullptr;
  const Plan* plan = nullptr;
  const std::vector<PastRun>* past = nullptr;   // of earlier levels
  const trace::Trace* control = nullptr;        // of the run without faults
  std::vector<ReachedContext>* reached = nullptr;  // level 2 writes, level 3 reads
};

// Of level 1, 2 or 3; the configuration holds no other.
[[nodiscard]] std::unique_ptr<Proposer> make_proposer(int level, const SearchContext& context);

}  // namespace rose::diagnose
