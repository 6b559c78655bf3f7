// Writes the agent and its instructions for JVMs that rose does not start.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "profile/profile.h"

namespace rose::cli {

// Writes the agent and its instructions to the folder, for the methods that the profile calls infrequent. A method that
// is entered at least `hot_rate` times per second is detached.
[[nodiscard]] Result<int> write_java_agent(const std::filesystem::path& folder, const profile::Profile& profile,
                                           double hot_rate, const std::vector<std::string>& exceptions,
                                           const Common& common);
// The path of the agent in such a folder.
[[nodiscard]] Result<std::filesystem::path> java_agent_in(const std::filesystem::path& folder);

}  // namespace rose::cli
