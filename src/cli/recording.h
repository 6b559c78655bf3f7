// Makes a running `rose trace` write its window: the options, the control socket, the triggers and the files.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/options.h"
#include "observe/control.h"
#include "observe/triggers.h"

namespace rose::cli {

struct RecordingOptions {
  std::string out = "dump.bin";
  std::string control;
  std::string when;  // --dump-when
  std::string every;
  std::string timeout;
  bool on_crash = false;
  std::vector<std::string> on_log;
  bool together = false;
  std::string after;
  std::string cooldown;
  int keep = 5;
  std::vector<std::string> recordings;  // [NODE=]FOLDER
  std::string recordings_size;
};

// `options` must outlive the returned options.
[[nodiscard]] std::vector<Option> recording_options(RecordingOptions& options);
// Refuses contradictory options.
[[nodiscard]] Result<observe::TriggerOptions> trigger_options(const RecordingOptions& options);
[[nodiscard]] Result<observe::DumpFiles> open_dump_files(const RecordingOptions& options);
// --recordings and --recordings-size. `nodes`: the names of the targets, of which the first is the default.
[[nodiscard]] Result<std::shared_ptr<observe::RecordingSources>> recording_sources(
    const RecordingOptions& options, const std::vector<std::string>& nodes);

// Writes the last dump to the file or folder `out`. The content of this dump exists nowhere else. Therefore, if the
// disk is full, writing is retried for a while or until a further Ctrl-C.
[[nodiscard]] Result<observe::WrittenDump> write_last(const std::filesystem::path& out,
                                                      const std::function<Result<observe::WrittenDump>()>& write);

// Handles SIGUSR1, the control socket and the triggers while a tracer runs.
class Recording {
 public:
  // Without --control, uses `own_socket`, or no socket if that is already in use.
  [[nodiscard]] static Result<std::unique_ptr<Recording>> start(const RecordingOptions& options,
                                                                const std::filesystem::path& own_socket,
                                                                const observe::TriggerOptions& triggers,
                                                                observe::Tracer& tracer, observe::DumpFiles files);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Call this before the tracer is destroyed. From then on nothing is written automatically.
  void stop();
  [[nodiscard]] const observe::TriggerTally& tally() const { return tally_; }
  // The cause of the last dump: a request that is still pending, else `otherwise`.
  [[nodiscard]] observe::Cause last_cause(observe::Cause otherwise) const;
  // Call it only while the tracer exists.
  Result<observe::WrittenDump> write(const observe::Cause& cause) { return recorder_.write(cause); }
  // True if 'rose dump' can reach this tracer. False if another tracer has the socket.
  [[nodiscard]] bool has_socket() const { return control_ != nullptr; }
  [[nodiscard]] observe::DumpFiles& files() { return recorder_.files(); }

 private:
  Recording(observe::Tracer& tracer, observe::DumpFiles files) : recorder_(tracer, std::move(files)) {}

  observe::Recorder recorder_;
  std::unique_ptr<observe::Triggers> triggers_;
  std::unique_ptr<observe::ControlServer> control_;
  observe::TriggerTally tally_;
};

// Adds "dumps", "left_out" and "oracle" to the result.
void add_recorded(Json& json, const std::vector<observe::WrittenDump>& dumps, const observe::TriggerTally& tally);

}  // namespace rose::cli
