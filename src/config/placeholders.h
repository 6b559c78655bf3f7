// Checks the ${...} in commands and environments of rose.toml.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::config {

enum class Where { node, run };  // node: in a node's own command or env; run: in commands that do not belong to a node

struct PlaceholderProblem {
  std::string what;
  std::string hint;
};

// Returns what is wrong with the ${...} in `text`, if anything. Nodes in ${ip_...} are appended to `named`, for a later
// check, because not all nodes may have been read yet.
std::optional<PlaceholderProblem> placeholder_problem(std::string_view text, Where where,
                                                      std::vector<std::string>& named);

// Replaces in `text` the placeholders whose values are known before a run: ${config_dir}, and "$${", which becomes
// "${". Returns nullopt if `text` contains any other placeholder.
std::optional<std::string> with_config_dir(std::string_view text, std::string_view config_dir);

}  // namespace rose::config
