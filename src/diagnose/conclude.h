// The result of a search: verdict, reason and remarks. Private to diagnose.
#pragma once

#include <optional>
#include <string>

#include "diagnose/lab.h"
#include "diagnose/refine.h"

namespace rose::diagnose {

// True if, in all runs of the schedule that reproduced the bug, the workload ended far sooner than it does without
// faults, and after far less time than the incident lasted.
[[nodiscard]] bool workload_ended_early(const Diagnosis& diagnosis, const Tried& tried);

// False if the evidence suggests that the runs of `tried` reproduced a failure other than the incident's. This is
// possible because an oracle may accept several failures.
[[nodiscard]] bool resembles_incident(const Inputs& inputs, const Diagnosis& diagnosis, const Tried& tried);

class Conclusion {
 public:
  Conclusion(const Inputs& inputs, const Lab& lab, Diagnosis& diagnosis) : inputs_(inputs), lab_(lab), d_(diagnosis) {}

  // Concludes a search whose evidence has no candidate.
  void nothing_to_try();
  // `end`: the schedule that was found, if any. May be called again when more is known about it.
  void conclude(const std::optional<Found>& end);

 private:
  void conclude_without();
  [[nodiscard]] std::string ended_early() const;
  [[nodiscard]] std::string consequence(const Schedule& schedule) const;
  [[nodiscard]] std::string missing_messages(const Tried& found) const;
  [[nodiscard]] std::string missing_ends(const Tried& found) const;
  [[nodiscard]] std::string ended_themselves(const Schedule& schedule) const;
  [[nodiscard]] Remarks remarks(const Found& end) const;

  const Inputs& inputs_;
  const Lab& lab_;
  Diagnosis& d_;
  bool noted_ = false;
};

}  // namespace rose::diagnose
