// Determines which nodes run a JVM, and which of their functions are Java methods, from the configuration alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace rose::jvm {

// Decides by the node's command, binaries and sources. `name`: a function that was asked for; if the command is a
// script, which does not show what it runs, the form of this name decides.
[[nodiscard]] bool runs_java(const config::Node& node, std::string_view name = {});
// True if it runs Java, or if its command is a script or similar that may do so.
[[nodiscard]] bool may_run_java(const config::Node& node);
// True if its command starts an unknown program: a script, a shell, or nothing that rose starts.
[[nodiscard]] bool is_launcher(const config::Node& node);
// True for a program that starts others: a shell, a wrapper, a script.
[[nodiscard]] bool launches(const std::string& program);
// True if `name` is a method of the node's JVM.
[[nodiscard]] bool is_method(const config::Node& node, std::string_view name);

// For contexts in which only a method is possible: accepts short names too, because a script may start a JVM.
[[nodiscard]] bool may_be_method(const config::Node& node, std::string_view name);

// The node's `functions` and `sources` without those of its JVM.
struct Names {
  std::vector<std::string> functions, sources;
};
[[nodiscard]] Names native_of(const config::Node& node);
// The methods of its JVM that are watched; empty if it runs none.
[[nodiscard]] Names methods_of(const config::Node& node);

}  // namespace rose::jvm
