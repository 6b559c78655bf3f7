// Extends an explanation, after its first comparison, by the answers to queries about values (in several rounds) and
// about callers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/explain_runs.h"
#include "config/config.h"
#include "explain/explain.h"
#include "explain/kept.h"
#include "report/explanation.h"

namespace rose::cli {

inline constexpr std::size_t kMostRounds = 4;
inline constexpr std::size_t kMostCallersAsked = 48;  // functions whose callers are queried
// Without --deepen, rounds may take this many times the duration of the first comparison. A round has about as many
// runs as that comparison, so one round fits, and two rounds fit if they are fast.
inline constexpr double kDefaultDepth = 1.25;

// The time that all rounds may take, and the expected time of one round, in seconds.
struct Depth {
  std::optional<double> most;  // none: only the number of rounds is limited
  double expected = 0;
};

// In each round, queries the functions between the fault and the symptom. Later rounds repeat the queries whose values
// distinguish failing from correct runs, and continue from the functions of these queries. The runs of a round are
// compared together with those of the first answer, `kept.input`, and of the rounds before. Reports the last round
// whose runs could be compared, and adds it to `kept`, unless fewer values distinguish the runs than before. `own`: the
// user's queries, which are always repeated. Returns whether there was a round whose runs could be compared.
[[nodiscard]] Result<bool> deepen(const config::Config& config, replay::QueryFinder& finder,
                                  const std::vector<std::string>& own, Depth depth, ComparedRuns& runs,
                                  report::ExplanationReport& report, explain::Kept& kept);

// The functions whose callers are queried. `fresh`: functions that only failing runs enter or that come next after a
// failed call; `lost`: functions that only correct runs enter.
struct OfOneSide {
  std::vector<std::string> fresh, lost;
  explicit OfOneSide(const explain::Explanation& explanation)
      : fresh(explain::caller_queries(explanation, kMostCallersAsked)),
        lost(explain::lost_functions(explanation, kMostCallersAsked)) {}
  bool operator==(const OfOneSide&) const = default;
};

// Makes up to three more recordings. The first records the callers of functions that only failing runs enter or that
// come next after a failed call. The second records the callers of functions that decided by a wrong clock. The third,
// without faults, records the callers of functions that only correct runs enter.
[[nodiscard]] Result<void> ask_callers(const config::Config& config, replay::QueryFinder& finder,
                                       const OfOneSide& functions, ComparedRuns& runs,
                                       report::ExplanationReport& report, explain::Kept& kept);

}  // namespace rose::cli
