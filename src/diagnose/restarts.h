// What follows a restart in the test deployment, if the evidence contains one and the profile does not show it: runs
// with a planned restart are made before anything is tried. Private to diagnose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/lab.h"

namespace rose::diagnose {

struct RestartRuns {
  bool learnt = false;
  profile::Restarts restarts;  // the profile's, extended by these runs
  struct Hit {
    std::size_t tried = 0;  // into Diagnosis::tried
    schedule::RunResult result;
  };
  std::vector<Hit> hits;           // the planned restart alone reproduced the bug
  std::vector<std::string> notes;  // conclusions about the evidence
};

// One run for each restarted node, provided the deployment starts it again; none if no candidate follows a restart.
[[nodiscard]] Result<RestartRuns> survey_restarts(const Inputs& inputs, const Plan& plan, Lab& lab,
                                                  std::int64_t workload_ns);

// Ends the node in the same way as in the dump, after a third of a workload of that length. nullopt: it would stay
// down.
[[nodiscard]] std::optional<schedule::Schedule> planned_restart(const Inputs& inputs, const Plan& plan,
                                                                const RestartSeen& seen, std::int64_t workload_ns);

}  // namespace rose::diagnose
