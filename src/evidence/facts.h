// Reads the dumps in one pass: process events, silences, starts of nodes, and the time span. Failed calls are read
// later (failed_calls.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "evidence/discards.h"
#include "evidence/given.h"

namespace rose::evidence {

// The time span of the dumps; timestamps in nanoseconds.
struct Times {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t workload = 0;  // start of the workload; 0: unknown
  bool recorded = true;       // a tracer recorded events; false: there are only logs

  // For people: "3.2s after the workload began", "3.2s into the dump".
  [[nodiscard]] std::string at(std::int64_t ts) const;
  // The duration of the dumps divided by that of a run of the profile; at least 1.
  [[nodiscard]] double longer_than_a_run(const profile::Profile& profile) const;
  // How many runs of the workload the dumps are assumed to contain: longer_than_a_run(), but 1 if that is less than
  // kLongerThanRun. Used for events that a workload causes once in each run, however long the run takes.
  [[nodiscard]] double runs_in_window(const profile::Profile& profile) const;
};

struct ProcessEvent {
  const Observation* event = nullptr;
  std::size_t source = 0;  // index of the source that contains the event
  int node = -1;
  int signal = 0;  // the signal that ended the process; 0: the process exited
  int exit_code = -1;
  bool main = false;
  bool main_known = false;   // some event of the node shows which process is the main one
  std::uint64_t weight = 1;  // number of events that the record represents
  std::int64_t began = 0;    // end_began() of the event
  bool foreign = false;      // the test deployment does not run the program of this process
  bool asked = false;        // another process had asked this process to end, by a signal that this process caught
};

// The time at which the signal that ended the process was sent. If the record lacks this time or represents several
// ends, and for events other than ends, the timestamp of the record.
[[nodiscard]] std::int64_t end_began(const Event& event);

// True if the process exited after another process had asked it to end, as `systemctl restart` and a rolling update do.
// The tracer records the sender of such a signal, but not which signal it is. A signal by the kernel (a hangup) or by
// the process itself is no request from outside.
[[nodiscard]] bool asked_to_end(const trace::TraceBase& trace, const Event& event);

struct Facts {
  Times times;
  std::vector<std::vector<std::int64_t>> starts;                     // by node: starts of its main process, ascending
  std::vector<ProcessEvent> processes;                               // ends and pauses, by time
  std::vector<std::pair<std::size_t, const Observation*>> silences;  // each with the index of its source
  std::uint64_t failures = 0;                                        // number of SCF, ND and PS events
  Discards discards;
  std::vector<std::string> notes;

  // The time of the node's first start after `ts`; kNever if there is none.
  [[nodiscard]] std::int64_t back_after(int node, std::int64_t ts) const;
};

[[nodiscard]] Facts read_facts(const Given& given);

}  // namespace rose::evidence
