// Results as a self-contained HTML file that can be attached to a ticket. It loads nothing, escapes every string of a
// dump or log, allows only its own style and script (nonce), and is complete without the script.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/dump/show.h"
#include "report/results.h"
#include "report/timeline.h"

namespace rose::report {

struct PageContext {
  std::string nonce;               // fresh_nonce()
  std::vector<std::string> nodes;  // the nodes of the deployment; each gets a lane, even if it has no events
  std::vector<std::pair<std::string, std::string>> environment;  // pairs such as "Kernel" and "6.18.0"
};

// A nonce made from random numbers of the kernel, so that no string of a dump can contain it.
[[nodiscard]] std::string fresh_nonce();

// `incident`: the dumps, and the lane of each of their events. `run`: a run of the found schedule, with its trace; may
// be null.
[[nodiscard]] std::string diagnosis_html(const DiagnosisReport& report, const std::vector<Source>& incident,
                                         const schedule::RunResult* run, const PageContext& context);

// `runs`: the runs to show, with their traces, for example one that reproduced the bug and one that did not.
[[nodiscard]] std::string replay_html(const ReplayReport& report, const std::vector<schedule::RunResult>& runs,
                                      const PageContext& context);

// The page of a dump.
[[nodiscard]] std::string dump_html(const trace::Trace& trace, const ShowFilter& filter, const std::string& file,
                                    const PageContext& context);

}  // namespace rose::report
