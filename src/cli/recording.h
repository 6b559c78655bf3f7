// What makes a running `rose trace` write its window: the options, the control socket, the triggers, the files.
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

// `options` must live as long as what they are given to.
[[nodiscard]] std::vector<Option> recording_options(RecordingOptions& options);
// Refuses what contradicts itself.
[[nodiscard]] Result<observe::TriggerOptions> trigger_options(const RecordingOptions& options);
[[nodiscard]] Result<observe::DumpFiles> open_dump_files(const RecordingOptions& options);
// --recordings and --recordings-size. `nodes`: the targets' names, the first of which is meant where none is given.
[[nodiscard]] Result<std::shared_ptr<observe::RecordingSources>> recording_sources(
    const RecordingOptions& options, const std::vector<std::string>& nodes);

// The last dump holds what nothing else does: when it cannot be written to the file or folder `out`, as the disk is
// full, it is tried again for a while, or until a further Ctrl-C.
[[nodiscard]] Result<observe::WrittenDump> write_last(const std::filesystem::path& out,
                                                      const std::function<Result<observe::WrittenDump>()>& write);

// SIGUSR1, the control socket and the triggers, for as long as a tracer runs.
class Recording {
 public:
  // Without --control the socket is `own_socket`; it does without one when that is taken.
  [[nodiscard]] static Result<std::unique_ptr<Recording>> start(const RecordingOptions& options,
                                                                const std::filesystem::path& own_socket,
                                                                const observe::TriggerOptions& triggers,
                                                                observe::Tracer& tracer, observe::DumpFiles files);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Before the tracer goes. Nothing is written by itself from here on.
  void stop();
  [[nodiscard]] const observe::TriggerTally& tally() const { return tally_; }
  // Of the last dump: what was still to be written, else `otherwise`.
  [[nodiscard]] observe::Cause last_cause(observe::Cause otherwise) const;
  // Only while the tracer is there.
  Result<observe::WrittenDump> write(const observe::Cause& cause) { return recorder_.write(cause); }
  [[nodiscard]] observe::DumpFiles& files() { return recorder_.files(); }

 private:
  Recording(observe::Tracer& tracer, observe::DumpFiles files) : recorder_(tracer, std::move(files)) {}

  observe::Recorder recorder_;
  std::unique_ptr<observe::Triggers> triggers_;
  std::unique_ptr<observe::ControlServer> control_;
  observe::TriggerTally tally_;
};

// "dumps", "left_out" and "oracle" of the result.
void add_recorded(Json& json, const std::vector<observe::WrittenDump>& dumps, const observe::TriggerTally& tally);

}  // namespace rose::cli
