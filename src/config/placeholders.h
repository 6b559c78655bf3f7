// ${...} in the commands and environments of rose.toml.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::config {

enum class Where { node, run };  // a node's own command and env, or what runs beside the nodes

struct PlaceholderProblem {
  std::string what;
  std::string hint;
};

// What is wrong with the ${...} in `text`. The nodes that ${ip_...} names go to `named`: not all may be known yet.
std::optional<PlaceholderProblem> placeholder_problem(std::string_view text, Where where,
                                                      std::vector<std::string>& named);

}  // namespace rose::config
