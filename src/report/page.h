// Results as one self-contained HTML file, to be attached to a ticket: nothing is fetched, every string of a dump or
// log is escaped, only its own style and script run (nonce), and without the script it is whole all the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/dump/show.h"
#include "report/results.h"
#include "report/timeline.h"

namespace rose::report {

struct PageContext {
  std::string nonce;                                             // fresh_nonce()
  std::vector<std::string> nodes;                                // of the deployment: lanes also when silent
  std::vector<std::pair<std::string, std::string>> environment;  // "Kernel", "6.18.0"
};

// From the kernel's random numbers: no string of a dump can know it.
[[nodiscard]] std::string fresh_nonce();

// `incident`: the dumps, with the lane of each event. `run`: one run of the found schedule, with its trace; may be
// null.
[[nodiscard]] std::string diagnosis_html(const DiagnosisReport& report, const std::vector<Source>& incident,
                                         const schedule::RunResult* run, const PageContext& context);

// `runs`: those with their traces that are shown, such as one that reproduced and one that did not.
[[nodiscard]] std::string replay_html(const ReplayReport& report, const std::vector<schedule::RunResult>& runs,
                                      const PageContext& context);

// A dump by itself.
[[nodiscard]] std::string dump_html(const trace::Trace& trace, const ShowFilter& filter, const std::string& file,
                                    const PageContext& context);

}  // namespace rose::report
