#include "diagnose/restarts.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "diagnose/words.h"
#include "evidence/forms.h"
#include "schedule/restart.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostRestartRuns = 3;

// The signal for the planned restart: SIGTERM if the process exited, because it could then finish its work; the signal
// that ended it if that was SIGTERM or SIGINT; SIGKILL otherwise.
int signal_like(const RestartSeen& seen) {
  if (seen.signal == 0) return SIGTERM;
  return seen.signal == SIGTERM || seen.signal == SIGINT ? seen.signal : SIGKILL;
}

}  // namespace

std::optional<Schedule> planned_restart(const Inputs& inputs, const Plan& plan, const RestartSeen& seen,
                                        std::int64_t workload_ns) {
  const config::Node* node = inputs.config->find(seen.node);
  if (node == nullptr || !node->restart || node->attach) return std::nullopt;
  Schedule schedule = schedule::planned_restart(inputs.config->name, seen.node, signal_like(seen), workload_ns);
  // Use the id of the crash candidate: if the restart reproduces the bug, it is the fault of that candidate at another
  // time.
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::crash && c.node == seen.node) {
      schedule.faults[0].id = c.fault.id;
      break;
    }
  return schedule;
}

Result<RestartRuns> survey_restarts(const Inputs& inputs, const Plan& plan, Lab& lab, std::int64_t workload_ns) {
  RestartRuns runs;
  if (inputs.profile) runs.restarts = inputs.profile->restarts;
  if (inputs.without.contains("restarts") || !inputs.recorded()) return runs;
  std::vector<std::size_t> tried;
  std::vector<std::string> nodes;
  for (const RestartSeen& seen : plan.restarts) {
    if (seen.after == 0 || runs.restarts.nodes.contains(seen.node) || tried.size() >= kMostRestartRuns) continue;
    std::optional<Schedule> schedule = planned_restart(inputs, plan, seen, workload_ns);
    if (!schedule) {
      runs.notes.push_back(
          fmt::format("{} was restarted in the dump, but its [[node]] has no `restart`: what follows from its restart "
                      "cannot be distinguished from faults; set `restart` as it is in production",
                      seen.node));
      continue;
    }
    tried.push_back(
        lab.enter(*schedule, 1, fmt::format("a planned restart of {}, to see what follows from it", seen.node)).index);
    nodes.push_back(seen.node);
  }
  if (static_cast<int>(tried.size()) >= lab.left()) tried.resize(static_cast<std::size_t>(std::max(0, lab.left() - 1)));
  if (tried.empty()) return runs;
  ROSE_TRY(std::vector<Lab::Made> made,
           lab.run(tried, fmt::format("a planned restart of {}: its consequences are not faults",
                                      fmt::join(nodes.begin(),
                                                nodes.begin() + static_cast<std::ptrdiff_t>(tried.size()), ", "))));
  for (std::size_t i = 0; i < made.size(); ++i) {
    schedule::RunResult& result = made[i].result;
    if (made[i].armed && profile::learn_restart(runs.restarts, result.trace, nodes[i])) {
      runs.learnt = true;
    } else {
      runs.notes.push_back(fmt::format(
          "{} did not come back in a run with a planned restart{}: what follows from its restart in the dump cannot be "
          "distinguished from faults",
          nodes[i], result.reason.empty() ? "" : fmt::format(" ({})", result.reason)));
    }
    if (made[i].armed && result.verdict == schedule::Verdict::reproduced)
      runs.hits.push_back({tried[i], std::move(result)});
  }
  return runs;
}

}  // namespace rose::diagnose
