// The JSON record of a run without its trace. It is a line of record.jsonl, the file run.json, and what a worker sends.
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
// Parses the record of a run. Fails with ErrorKind::input if `json` is no such record.
[[nodiscard]] Result<RecordedRun> run_from(const Json& json);

}  // namespace rose::replay
