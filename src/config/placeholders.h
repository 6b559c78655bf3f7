// Checks the ${...} in commands and environments of rose.toml.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::config {

enum class Where { node, run };  // node: a node's own command and env; run: commands that run beside the nodes

struct PlaceholderProblem {
  std::string what;
  std::string hint;
};

// What is wrong with the ${...} in `text`. Nodes in ${ip_...} are appended to `named`, because not all nodes may have
// been read yet.
std::optional<PlaceholderProblem> placeholder_problem(std::string_view text, Where where,
                                                      std::vector<std::string>& named);

// `text` with what is known before a run filled in: ${config_dir}, and "${" for "$${". nullopt if it contains another
// placeholder.
std::optional<std::string> with_config_dir(std::string_view text, std::string_view config_dir);

}  // namespace rose::config
