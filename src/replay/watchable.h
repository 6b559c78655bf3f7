// Determines which functions of a deployment's nodes can be watched, even if the configuration names none, because an
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

inline constexpr std::size_t kMostWatched = 6000;  // at most this many functions of a node

struct Watchable {
  // The functions as a profile, for RunOptions::profile. In this profile, all of them are infrequent.
  profile::Profile functions;
  // The configuration with functions added to every node for which some are known.
  config::Config config;
  std::map<std::pair<std::string, std::string>, std::string> files;  // by node and function: the source file
  // for each node whose functions cannot be watched, one sentence with the reason and what to do
  std::vector<std::string> unseen;
};

// True for programs that come with the operating system. Such a program may be a server or a tool that scripts call.
[[nodiscard]] bool is_systems(const std::string& binary);
// True if the program has functions of its own that can be watched.
[[nodiscard]] bool shows_functions(const std::string& binary);
// True if a program of the node is CPython, so that functions of Python can be watched.
[[nodiscard]] bool runs_python(const config::Node& node);
// True if the functions of the node are known only while it runs: the configuration names none, and its program has
// none of its own, because it is a launcher or exists only during a run.
[[nodiscard]] bool shows_no_function(const config::Node& node);

// Fails with ErrorKind::input if functions or sources that the configuration names do not exist.
[[nodiscard]] Result<Watchable> watchable_functions(const config::Config& config);

}  // namespace rose::replay
