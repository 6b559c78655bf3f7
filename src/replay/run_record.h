// The record form of a run, without its trace: a line of record.jsonl, run.json, what a worker sends.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "replay/run.h"

namespace rose::replay {

[[nodiscard]] nlohmann::ordered_json run_json(const Run& run, const schedule::Schedule& schedule);

struct RecordedRun {
  std::string fingerprint;  // of the schedule
  Run run;
};
// Reads it back. Error (input) when it is no such record.
[[nodiscard]] Result<RecordedRun> run_from(const nlohmann::ordered_json& json);

}  // namespace rose::replay
