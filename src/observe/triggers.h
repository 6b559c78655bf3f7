// The triggers of a flight recorder: SIGUSR1, an oracle that is run periodically, crashes, lines in log files, and
// dumps of other hosts in a shared folder. One thread watches for them and writes the window when the DumpPlan requires
// it. Tracing continues meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "observe/dump_files.h"
#include "observe/dump_plan.h"
#include "observe/tracer.h"

namespace rose::observe {

struct LogWatch {
  std::filesystem::path file;
  std::string regex;  // RE2
};

struct TriggerOptions {
  std::string oracle;  // a command for /bin/sh: exit status 0: the bug is there, 1: it is not, others: undecided
  std::int64_t every_ns = 5'000'000'000;
  std::int64_t oracle_timeout_ns = 30'000'000'000;
  bool on_crash = false;
  std::vector<LogWatch> logs;
  // A folder that the tracers of several hosts share: a trigger on one host makes all of them write a dump.
  std::filesystem::path together;
  std::int64_t after_ns = 0;                  // delay between a trigger and its dump
  std::int64_t cooldown_ns = 60'000'000'000;  // minimum time between automatic dumps
};

// Parses "FILE:REGEX", split at the first ':', and checks the expression.
[[nodiscard]] Result<LogWatch> parse_log_watch(std::string_view option, std::string_view text);

// For example "n1: process 41 was killed by SIGSEGV".
[[nodiscard]] std::string describe_end(const ProcessEnd& end);

// Writes the window of a tracer, one dump at a time, for requests from any thread.
class Recorder {
 public:
  Recorder(Tracer& tracer, DumpFiles files) : tracer_(tracer), files_(std::move(files)) {}
  Result<WrittenDump> write(const Cause& cause);
  [[nodiscard]] std::vector<WrittenDump> written();
  [[nodiscard]] DumpFiles& files() { return files_; }

 private:
  std::mutex mutex_;
  Tracer& tracer_;
  DumpFiles files_;
};

struct TriggerTally {
  std::uint64_t left_out = 0;  // triggers without their own dump
  OracleAnswers oracle;
  std::optional<Cause> pending;  // a dump that was planned but not written yet
};

class Triggers {
 public:
  // Tracer and recorder must outlive the result.
  [[nodiscard]] static Result<std::unique_ptr<Triggers>> start(const TriggerOptions& options, Tracer& tracer,
                                                               Recorder& recorder);
  virtual ~Triggers() = default;  // stops watching

  // Stops watching, and ends the oracle if it is running. The caller writes the last dump.
  virtual TriggerTally stop() = 0;
};

}  // namespace rose::observe
