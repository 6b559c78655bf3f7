// What follows a restart in the test deployment, where the evidence contains one and the profile does not say: runs
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
  profile::Restarts restarts;  // those of the profile, and what these runs showed
  struct Hit {
    std::size_t tried = 0;  // into Diagnosis::tried
    schedule::RunResult result;
  };
  std::vector<Hit> hits;           // the planned restart alone reproduced the bug
  std::vector<std::string> notes;  // what they say about the evidence
};

// One run for each restarted node, as far as the deployment starts it again; none where no candidate follows.
[[nodiscard]] Result<RestartRuns> survey_restarts(const Inputs& inputs, const Plan& plan, Lab& lab,
                                                  std::int64_t workload_ns);

// Ends that node, as it ended in the dump, a third into a workload of that length. nullopt: it would stay down.
[[nodiscard]] std::optional<schedule::Schedule> planned_restart(const Inputs& inputs, const Plan& plan,
                                                                const RestartSeen& seen, std::int64_t workload_ns);

}  // namespace rose::diagnose
