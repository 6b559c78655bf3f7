// All evidence of one incident, and what it is compared with: the profile and the deployment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "evidence/logs/throw_sites.h"
#include "evidence/observation.h"
#include "profile/profile.h"
#include "schedule/schedule.h"
#include "weights/weights.h"

namespace rose::evidence {

using namespace weights;  // the stages use its constants throughout

// An event or message that the evidence contains and fault-free runs do not. The right schedule should make it occur
// again.
struct Observable {
  std::string key;  // for traces as in signs_of(), for logs as in RunResult::messages_seen
  std::string node;
  std::int64_t first_ts = 0;
  std::string words{};  // for a message that reports a problem: its position in the log and its text; otherwise ""
};

// An exception that a log reports.
struct ReportedException {
  std::string node;                        // name in the deployment
  std::int64_t first_ts = 0, last_ts = 0;  // times of the first and the last message that reports it
  std::uint64_t count = 0;
  double weight = 0;             // 0..1: how clearly the logs report it
  std::string words;             // for people: the message, the exception, and the frame of the first site
  std::vector<ThrowSite> sites;  // the places that may have thrown it; at least one
  // how often the node entered the first site's method before the exception, estimated from the control run; 0: unknown
  std::uint64_t visits = 0;
};

// A clock step that the timestamps or messages of a log show.
struct ReportedClockStep {
  std::string node;              // name in the deployment
  std::int64_t at_ns = 0;        // the time that the clock showed just before the step
  std::int64_t duration_ns = 0;  // time until the step was undone; 0: no message shows that it was undone
  std::int64_t change_ns = 0;    // negative: the clock was set to an earlier time
  double weight = 0;             // 0..1: how clearly the logs report it
  std::string words;             // for people: the message
  // a message reports at `at_ns` that the clock is wrong; it may have been wrong from the beginning
  bool all_along = false;
  bool either_way = false;  // the direction is unknown: the step may also be -change_ns
  Known known = Known::stated;
};

// An exhausted or slow resource that logs report without naming a call and a file.
struct ReportedLimit {
  schedule::FaultKind kind = schedule::FaultKind::disk_full;  // disk_full, disk_slow or descriptors
  std::string node;                                           // name in the deployment
  std::int64_t at_ns = 0;                                     // wall-clock time
  std::int64_t took_ns = 0;                                   // disk_slow: the duration of the call
  std::uint64_t count = 1;                                    // number of messages that report it
  double weight = 0;                                          // 0..1: how clearly the logs report it
  std::string words;                                          // for people: the message
  bool inferred = false;  // the limit is uncertain: the message reports it, but then the node continued as before
};

struct Evidence {
  std::vector<Source> sources;  // one for each dump, then one for all logs
  // Reported by logs:
  std::vector<ReportedException> exceptions;
  std::vector<ReportedClockStep> clock_steps;
  std::vector<ReportedLimit> reported_limits;
  std::vector<Observable> log_observables;
  std::vector<std::string> log_notes;

  std::optional<profile::Profile> profile;
  const config::Config* config = nullptr;           // never nullptr
  std::map<std::string, std::string> host_to_node;  // --map: node by host
  std::set<std::string> without;                    // --without: names of diagnose::parts() that are switched off

  // True if there is a dump of a tracer. An event that a dump does not contain did not happen to the dump's nodes.
  [[nodiscard]] bool recorded() const;
  // True if the evidence includes messages of logs.
  [[nodiscard]] bool reported() const;
};

}  // namespace rose::evidence
