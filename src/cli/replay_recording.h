// rose replay --recording: the part of the command that runs one node alone.
#pragma once

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

}  // namespace rose::cli
