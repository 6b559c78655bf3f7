// The input that all stages share: the evidence, and which hosts are which nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "base/units.h"
#include "evidence/evidence.h"
#include "evidence/nodes.h"

namespace rose::evidence {

using trace::Event;
using trace::EventType;
using trace::ProcessState;

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

struct Given {
  const Evidence& inputs;
  const NodeMap& nodes;
  const std::int64_t longest_ns;                // upper bound of the duration of the test deployment's workload
  const profile::Restarts* restarts = nullptr;  // failures after restarts in that deployment; nullptr: unknown

  [[nodiscard]] const config::Config& config() const { return *inputs.config; }
  [[nodiscard]] const std::string& name(int node) const { return nodes.name(node); }
  // The shortest pause and the shortest silence that the tracer recorded, in nanoseconds: as in the header of a dump,
  // otherwise as in the configuration.
  [[nodiscard]] std::int64_t pause_threshold() const;
  [[nodiscard]] std::int64_t network_threshold() const;
};

// The number of events that the record represents.
inline std::uint64_t weight_of(const Event& event) { return std::max<std::uint32_t>(1, event.count); }

}  // namespace rose::evidence
