// Replays one node alone: starts a command with librose-rr in replay mode, and reports the result. The recording is
// checked before the command is started. Needs no deployment and no privilege.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace rose::replay {

struct RecordingFacts {
  std::filesystem::path path;
  std::string node, host, program;          // as the recorded process knew them; "" if unknown
  std::int64_t began_ns = 0, ended_ns = 0;  // wall clock: when recording began, and the time of the last record
  std::uint32_t pid = 0;
  std::uint64_t records = 0;  // number of records that the recording contains
  // number of records from the first checkpoint on: only these can be replayed if the beginning was overwritten
  std::uint64_t replayable = 0;
  std::uint64_t unfinished = 0;  // number of calls that had not returned when the process was killed
  std::uint64_t cut_at = 0;      // if damaged: the offset in bytes at which the valid part ends
  bool overwritten = false, damaged = false, ended = false;  // ended: the process ended on purpose
};

// `path`: a recording, or a folder that contains recordings directly or one level below (a run's directory,
// DUMP.recordings). From a folder, takes the newest recording of `node`, which is either the name in the recording or
// the name of its folder. If `node` is "", all recordings must be of the same node. Fails with ErrorKind::input if
// there is no such recording, or if it is damaged from the start, belongs to another node, or cannot be replayed.
[[nodiscard]] Result<RecordingFacts> find_recording(const std::filesystem::path& path, const std::string& node);

struct FoundRecording {
  std::filesystem::path path;
  std::optional<RecordingFacts> facts;
  std::string problem;  // why the recording cannot be replayed
};
// All recordings in this folder and its subfolders, sorted by name.
[[nodiscard]] std::vector<FoundRecording> recordings_under(const std::filesystem::path& folder);

// The recordings that nodes with `record` have left in a run's directory, sorted by node and then by start. Empty if
// the directory does not exist.
[[nodiscard]] std::vector<std::filesystem::path> recordings_of(const config::Config& config,
                                                               const std::filesystem::path& run_dir);

struct RecordedValue {
  std::uint64_t record = 0;  // number of the record in the recording, from 1
  std::int64_t ts_ns = 0;    // wall clock
  std::string_view key, data;
};
// Calls `each` with all values of a recording, in order, until it returns false. Returns whether earlier values were
// overwritten. `folder`: the folder that contains the recording, if another user may write to it (base/folder.h); empty
// if the path is the user's own.
[[nodiscard]] Result<bool> each_value(const std::filesystem::path& path,
                                      const std::function<bool(const RecordedValue&)>& each,
                                      const std::filesystem::path& folder = {});

// The shell command that replays one of the results of recordings_of() alone, with the command of the node in that run.
// "" for a node that rose does not start.
[[nodiscard]] std::string alone_command(const config::Config& config, const std::filesystem::path& run_dir,
                                        const std::filesystem::path& recording);

struct Divergence {
  std::uint64_t record = 0;    // the record that was not reached, from 1
  std::uint64_t position = 0;  // offset of that record in the recording, in bytes
  std::string key, expected, got;
};

struct AloneResult {
  RecordingFacts recording;
  std::uint64_t taken = 0;
  std::optional<Divergence> divergence;  // nothing: the recording was replayed to its end
  bool signalled = false;  // true: the command ended by the signal `code`; false: it exited with the status `code`
  int code = 0;
  std::string ended;  // how the command ended, in words
  double seconds = 0;
  [[nodiscard]] bool replayed() const { return !divergence; }
};

// Starts the command, which shares rose's terminal, and waits for its end. `output_to_stderr`: redirects the command's
// stdout to stderr. Fails with ErrorKind::input if the library refuses the recording.
[[nodiscard]] Result<AloneResult> replay_alone(const RecordingFacts& recording, const std::vector<std::string>& command,
                                               std::optional<std::int64_t> patience_ns, bool output_to_stderr);

}  // namespace rose::replay
