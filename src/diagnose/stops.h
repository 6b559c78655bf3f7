// The calls at which a node can be stopped after its context was met, most likely first. A fault-free run shows the
// state-changing ones; an exploratory run (which injects nothing and only counts) shows how often and how soon the
// others follow: most calls change nothing and are not in any trace.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "schedule/schedule.h"
#include "trace/event.h"

namespace rose::diagnose {

struct Stop {
  schedule::CallMatch call;
  int count = 1;
};

class Stops {
 public:
  // Calls of one kind after the context was met.
  struct Seen {
    std::uint64_t times = 0;
    std::int64_t after_ns = 0;  // the first one
  };

  Stops() = default;
  // `control`: the trace of a run without faults; may be null.
  Stops(const trace::Trace* control, const schedule::Fault& moved);

  // The calls that an exploratory run should count.
  [[nodiscard]] const std::vector<schedule::CallMatch>& kinds() const { return kinds_; }
  // Takes the counts of an exploratory run: one for each of kinds().
  void use_counts(const std::vector<Seen>& seen);

  // The next one; nullptr when there is none.
  [[nodiscard]] const Stop* front() const { return stops_.empty() ? nullptr : &stops_.front(); }
  std::optional<Stop> next();

 private:
  void take(const Stop& stop);
  void take_known(std::size_t from, std::size_t to);

  std::vector<Stop> known_;                 // the control run's
  std::vector<schedule::CallMatch> kinds_;  // those on the context's own files first
  std::size_t own_ = 0;                     // how many of them are on those files
  bool at_call_ = false;                    // the context ends with a call: a stop directly after it belongs to level 2
  std::deque<Stop> stops_;
  std::vector<Stop> taken_;
};

}  // namespace rose::diagnose
