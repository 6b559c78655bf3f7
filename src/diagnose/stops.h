// Selects the system calls at which a node is stopped (crashed or paused) after its context was met, the most promising
// first. The trace of a fault-free run contains the state-changing calls. No trace contains the other calls, so an
// exploratory run, which injects nothing, counts how often and how soon these other calls follow the context.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "schedule/schedule.h"
#include "trace/event.h"

namespace rose::diagnose {

// Stop the node at the `count`th matching call after the context.
struct Stop {
  schedule::CallMatch call;
  int count = 1;
};

class Stops {
 public:
  // The calls of one kind after the context was met.
  struct Seen {
    std::uint64_t times = 0;
    std::int64_t after_ns = 0;  // time from the context to the first such call
  };

  Stops() = default;
  // `control`: the trace of a run without faults, or nullptr. `moved`: the fault that is moved to these stops, with its
  // context.
  Stops(const trace::Trace* control, const schedule::Fault& moved);

  // The kinds of calls that an exploratory run should count.
  [[nodiscard]] const std::vector<schedule::CallMatch>& kinds() const { return kinds_; }
  // Reorders the stops by the results of an exploratory run. `seen` has one entry for each of kinds().
  void use_counts(const std::vector<Seen>& seen);

  // The next stop; nullptr if there is none.
  [[nodiscard]] const Stop* front() const { return stops_.empty() ? nullptr : &stops_.front(); }
  std::optional<Stop> next();

 private:
  void take(const Stop& stop);
  void take_known(std::size_t from, std::size_t to);

  std::vector<Stop> known_;                 // calls that followed the context in the control run
  std::vector<schedule::CallMatch> kinds_;  // kinds of calls on files of the context come first
  std::size_t own_ = 0;                     // number of kinds on files of the context
  bool at_call_ = false;                    // the context ends with a call; level 2 has tried a stop right after it
  std::deque<Stop> stops_;
  std::vector<Stop> taken_;
};

}  // namespace rose::diagnose
