// Learns which failures follow a restart in the test deployment, so that such failures in the dump are not taken for
// faults. If the dump contains restarts and the profile was made without any, runs with a planned restart are made
// before the search. Private to diagnose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/lab.h"

namespace rose::diagnose {

struct RestartRuns {
  bool learnt = false;
  profile::Restarts restarts;  // failures that follow restarts, from the profile and from these runs
  struct Hit {
    std::size_t tried = 0;  // index into Diagnosis::tried
    schedule::RunResult result;
  };
  std::vector<Hit> hits;           // runs in which the planned restart alone reproduced the bug
  std::vector<std::string> notes;  // for people: what could not be learned
};

// Makes one run for each restarted node that the deployment starts again; none if no failed call follows a restart.
// `workload_ns`: duration of the workload.
[[nodiscard]] Result<RestartRuns> survey_restarts(const Inputs& inputs, const Plan& plan, Lab& lab,
                                                  std::int64_t workload_ns);

// A schedule that ends the node as in the dump, after a third of the workload. nullopt: the deployment would not start
// it again.
[[nodiscard]] std::optional<schedule::Schedule> planned_restart(const Inputs& inputs, const Plan& plan,
                                                                const RestartSeen& seen, std::int64_t workload_ns);

}  // namespace rose::diagnose
