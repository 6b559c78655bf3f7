// rose replay --recording: the part of the command that runs one node alone. And what is said of recordings beside a
// dump.
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

// The exit code: 0 replayed to its end, 1 diverged.
[[nodiscard]] Result<int> replay_recording(AloneOptions options, const Common& common);

// Lines for people; "" without any.
[[nodiscard]] std::string recordings_beside(const std::filesystem::path& dump);

}  // namespace rose::cli
