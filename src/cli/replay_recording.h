// rose replay --recording: runs one node alone from a recording. Also lists the recordings beside a dump.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"

namespace rose::cli {

struct AloneOptions {
  std::string recording;
  std::string node;
  std::string patience;
  std::vector<std::string> command;
};

// Returns the exit code: 0 replayed to the end, 1 diverged.
[[nodiscard]] Result<int> replay_recording(AloneOptions options, const Common& common);

// Lists the recordings beside this dump for the user, with a command that replays them. "" if there are none.
[[nodiscard]] std::string recordings_beside(const std::filesystem::path& dump);

}  // namespace rose::cli
