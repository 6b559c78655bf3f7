// Which functions of a deployment's nodes can be watched, whether or not the configuration names some: what explains a
// run wants to see the application's own code.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "profile/profile.h"

namespace rose::replay {

inline constexpr std::size_t kMostWatched = 6000;  // functions of one node

struct Watchable {
  // As a profile in which all of them are infrequent: RunOptions::profile.
  profile::Profile functions;
  // The configuration, in which every node whose functions are known names them.
  config::Config config;
  std::map<std::pair<std::string, std::string>, std::string> files;  // by node and function: the source file
  std::vector<std::string> unseen;  // one sentence a node whose functions can't be seen: why, and what to do
};

// Comes with the system: a server, perhaps, or a tool that scripts call.
[[nodiscard]] bool is_systems(const std::string& binary);
// Of its own, that can be watched.
[[nodiscard]] bool shows_functions(const std::string& binary);
// Nobody named functions of this node, none of its own can be looked up in its program, and it may be that it launches
// another one.
[[nodiscard]] bool shows_no_function(const config::Node& node);

// Errors (input) are those of functions and sources that the configuration names and that are not there.
[[nodiscard]] Result<Watchable> watchable_functions(const config::Config& config);

}  // namespace rose::replay
