// The record form of a run, without its trace: a line of record.jsonl, run.json, what a worker sends.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "replay/run.h"

namespace rose::replay {

[[nodiscard]] Json run_json(const Run& run, const schedule::Schedule& schedule);

struct RecordedRun {
  std::string fingerprint;  // of the schedule
  Run run;
};
// Reads it back. Error (input) when it is no such record.
[[nodiscard]] Result<RecordedRun> run_from(const Json& json);

}  // namespace rose::replay
