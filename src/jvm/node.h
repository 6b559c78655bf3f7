// Determines which nodes run a JVM, and which of their functions are Java methods. It uses only the configuration and
// the files that the configuration names, so the nodes need not run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace rose::jvm {

// True if the node runs Java. Decides by the node's command, binaries and sources. A command that is a script does not
// show what it runs; then the form of `name`, a requested function, decides.
[[nodiscard]] bool runs_java(const config::Node& node, std::string_view name = {});
// True if the node runs Java, or if its command starts another program (such as a script does), which may be a JVM.
[[nodiscard]] bool may_run_java(const config::Node& node);
// True if the program that the node runs is unknown: its command is a script or a shell, or rose does not start it.
[[nodiscard]] bool is_launcher(const config::Node& node);
// True for a program that starts another program, such as a shell, a wrapper or a script.
[[nodiscard]] bool launches(const std::string& program);
// True if `name` is a method of the node's JVM.
[[nodiscard]] bool is_method(const config::Node& node, std::string_view name);

// Like is_method(), for places where only a method is possible. If the node's command is a script, which may start a
// JVM, a name without its package is therefore accepted, too.
[[nodiscard]] bool may_be_method(const config::Node& node, std::string_view name);

// The node's `functions` and `sources`, without those that belong to its JVM.
struct Names {
  std::vector<std::string> functions, sources;
};
[[nodiscard]] Names native_of(const config::Node& node);
// The methods of the node's JVM that are watched. Empty if the node runs no JVM.
[[nodiscard]] Names methods_of(const config::Node& node);

}  // namespace rose::jvm
