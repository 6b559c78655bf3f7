// One node alone: a command is started with librose-rr in replay mode, and what became of that is told. The recording
// is read and checked before anything starts. Knows no deployment and needs no privilege.
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
  std::string node, host, program;          // as the recorded process knew them; "" when it did not
  std::int64_t began_ns = 0, ended_ns = 0;  // wall clock, of the process' first call and of the last record
  std::uint32_t pid = 0;
  std::uint64_t records = 0;     // that are left
  std::uint64_t replayable = 0;  // from the first checkpoint on, when the beginning was overwritten
  std::uint64_t unfinished = 0;  // calls that had not returned when the process was killed
  std::uint64_t cut_at = 0;      // bytes; only when damaged
  bool overwritten = false, damaged = false, ended = false;  // ended: on purpose
};

// `path`: a recording, or a folder with recordings in it or in folders of it (a run's directory, DUMP.recordings); of
// those the newest of `node` (as the process knew itself, or by its folder's name), or of the only node there is.
// ErrorKind::input: none, damaged from the beginning, of another node, or it cannot be replayed.
[[nodiscard]] Result<RecordingFacts> find_recording(const std::filesystem::path& path, const std::string& node);

struct FoundRecording {
  std::filesystem::path path;
  std::optional<RecordingFacts> facts;
  std::string problem;  // why it cannot be replayed
};
// All in this folder, and in folders of it; by name.
[[nodiscard]] std::vector<FoundRecording> recordings_under(const std::filesystem::path& folder);

// Those that librose-rr made in a run's directory, of the nodes with `record`: in the order of the nodes, then of their
// starts. None when there is no such directory (any more).
[[nodiscard]] std::vector<std::filesystem::path> recordings_of(const config::Config& config,
                                                               const std::filesystem::path& run_dir);

struct RecordedValue {
  std::uint64_t record = 0;  // its number in the recording, from 1 on
  std::int64_t ts_ns = 0;    // wall clock
  std::string_view key, data;
};
// Calls `each` with all values of a recording, in their order, until it says no; returns whether earlier ones were
// overwritten.
[[nodiscard]] Result<bool> each_value(const std::filesystem::path& path,
                                      const std::function<bool(const RecordedValue&)>& each);

// What replays one of those alone, for a shell: with the node's command as it was in that run. "" for nodes that rose
// does not start itself.
[[nodiscard]] std::string alone_command(const config::Config& config, const std::filesystem::path& run_dir,
                                        const std::filesystem::path& recording);

struct Divergence {
  std::uint64_t record = 0;    // the one that was not met, from 1 on
  std::uint64_t position = 0;  // of it in the recording, in bytes
  std::string key, expected, got;
};

struct AloneResult {
  RecordingFacts recording;
  std::uint64_t taken = 0;
  std::optional<Divergence> divergence;  // absent: replayed to its end
  bool signalled = false;                // how the command ended
  int code = 0;
  std::string ended;  // the same for people
  double seconds = 0;
  [[nodiscard]] bool replayed() const { return !divergence; }
};

// Starts the command, which shares the terminal with rose, and waits for its end. `output_to_stderr`: the command's
// stdout goes there. ErrorKind::input when the library refuses the recording.
[[nodiscard]] Result<AloneResult> replay_alone(const RecordingFacts& recording, const std::vector<std::string>& command,
                                               std::optional<std::int64_t> patience_ns, bool output_to_stderr);

}  // namespace rose::replay
