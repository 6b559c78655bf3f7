// The input of extraction, read by all of its stages. Private to diagnose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "base/units.h"
#include "diagnose/diagnose.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

using trace::Event;
using trace::EventType;
using trace::ProcessState;

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

struct Given {
  const Inputs& inputs;
  const NodeMap& nodes;
  const std::int64_t longest_ns;                // an upper bound of the duration of the test deployment's workload
  const profile::Restarts* restarts = nullptr;  // what follows restarts there; nullptr: not known

  [[nodiscard]] const config::Config& config() const { return *inputs.config; }
  [[nodiscard]] const std::string& name(int node) const { return nodes.name(node); }
  // The log entry behind the event; nullptr if it comes from a dump.
  [[nodiscard]] const LogEvidence::OfEvent* log_evidence(const Event& event) const;
  // How clearly the evidence states it: 1 for events of a dump.
  [[nodiscard]] double plainness(const Event& event) const;
  // Shorter pauses are not in the dump. If the dump does not say how short, the configuration does.
  [[nodiscard]] std::int64_t pause_threshold() const;
  [[nodiscard]] std::int64_t network_threshold() const;
};

inline std::uint64_t weight_of(const Event& event) { return std::max<std::uint32_t>(1, event.count); }

}  // namespace rose::diagnose
