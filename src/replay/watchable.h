// Determines which functions of a deployment's nodes can be watched, whether or not the configuration names any: an
// explanation needs the application's own code.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "profile/profile.h"

namespace rose::replay {

inline constexpr std::size_t kMostWatched = 6000;  // functions per node

struct Watchable {
  // The functions as a profile in which all of them are infrequent, for RunOptions::profile.
  profile::Profile functions;
  // The configuration with functions added to every node for which some are known.
  config::Config config;
  std::map<std::pair<std::string, std::string>, std::string> files;  // by node and function: the source file
  std::vector<std::string> unseen;  // one sentence for each node whose functions cannot be watched: why, and what to do
};

// True for programs that come with the operating system: possibly a server, or a tool that scripts call.
[[nodiscard]] bool is_systems(const std::string& binary);
// True if the program has functions of its own that can be watched.
[[nodiscard]] bool shows_functions(const std::string& binary);
// True if a program of the node is CPython: its functions of Python can be watched.
[[nodiscard]] bool runs_python(const config::Node& node);
// True if the node names no functions, its program is not known before a run or has none of its own, and it may launch
// another program.
[[nodiscard]] bool shows_no_function(const config::Node& node);

// Returns ErrorKind::input if functions or sources named in the configuration do not exist.
[[nodiscard]] Result<Watchable> watchable_functions(const config::Config& config);

}  // namespace rose::replay
