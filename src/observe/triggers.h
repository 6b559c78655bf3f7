// The triggers of a flight recorder: SIGUSR1, an oracle asked now and then, crashes, lines in log files. One thread
// that watches them all and writes the window when the plan says so; tracing goes on meanwhile.
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
  std::string regex;  // RE2: as ECMAScript, without back references and looking around
};

struct TriggerOptions {
  std::string oracle;  // a command for /bin/sh: exit 0 the bug is there, 1 it is not, anything else it could not tell
  std::int64_t every_ns = 5'000'000'000;
  std::int64_t oracle_timeout_ns = 30'000'000'000;
  bool on_crash = false;
  std::vector<LogWatch> logs;
  std::filesystem::path together;  // a folder that tracers of several hosts write to: a trigger of one is all of theirs
  std::int64_t after_ns = 0;       // from the trigger to the dump
  std::int64_t cooldown_ns = 60'000'000'000;  // between dumps that nobody asked for
};

// "FILE:REGEX", split at the first ':'; the regex is tried here.
[[nodiscard]] Result<LogWatch> parse_log_watch(std::string_view option, std::string_view text);

// "n1: process 41 was killed by SIGSEGV"
[[nodiscard]] std::string describe_end(const ProcessEnd& end);

// Writes the window of a tracer, one dump at a time, whoever asks.
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
  std::uint64_t left_out = 0;  // triggers that made no dump of their own
  OracleAnswers oracle;
  std::optional<Cause> pending;  // whose dump was still to come
};

class Triggers {
 public:
  // Tracer and recorder must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<Triggers>> start(const TriggerOptions& options, Tracer& tracer,
                                                               Recorder& recorder);
  virtual ~Triggers() = default;  // stops

  // Ends the watching, and the oracle if it is being asked. The last dump is the caller's.
  virtual TriggerTally stop() = 0;
};

}  // namespace rose::observe
