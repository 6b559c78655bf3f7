// The JSON record of a run without its trace: a line of record.jsonl, run.json, and what a worker sends.
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
// Parses the record of a run. Returns ErrorKind::input if `json` is not such a record.
[[nodiscard]] Result<RecordedRun> run_from(const Json& json);

}  // namespace rose::replay
