// The agent for JVMs that rose did not start: its file and instructions, written for people to start their JVMs with.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "profile/profile.h"

namespace rose::cli {

// Into the folder, for the methods that the profile calls infrequent. `hot_rate`: entered so often a second one is let
// go of.
[[nodiscard]] Result<int> write_java_agent(const std::filesystem::path& folder, const profile::Profile& profile,
                                           double hot_rate, const std::vector<std::string>& exceptions,
                                           const Common& common);
// The agent's file in a folder that was written so.
[[nodiscard]] Result<std::filesystem::path> java_agent_in(const std::filesystem::path& folder);

}  // namespace rose::cli
