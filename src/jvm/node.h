// Which nodes run a JVM, and which of their functions are its methods: told from the configuration alone, before
// anything runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace rose::jvm {

// The node's command, binaries and sources say so. `name`: of a function that is asked for; where the command is a
// script or the like, which can't tell, its shape decides.
[[nodiscard]] bool runs_java(const config::Node& node, std::string_view name = {});
// It runs Java, or its command is a script or the like, which may.
[[nodiscard]] bool may_run_java(const config::Node& node);
// Its command starts something else, nobody can tell what: a script, a shell, nothing that rose starts.
[[nodiscard]] bool is_launcher(const config::Node& node);
// A program that starts others: a shell, a wrapper, a script.
[[nodiscard]] bool launches(const std::string& program);
// Is it a method of the node's JVM?
[[nodiscard]] bool is_method(const config::Node& node, std::string_view name);

// The same where only a method can be meant: a script may start a JVM, so its short name will do too.
[[nodiscard]] bool may_be_method(const config::Node& node, std::string_view name);

// The node's `functions` and `sources` without those of its JVM.
struct Names {
  std::vector<std::string> functions, sources;
};
[[nodiscard]] Names native_of(const config::Node& node);
// Those of its JVM; none where it runs none.
[[nodiscard]] Names methods_of(const config::Node& node);

}  // namespace rose::jvm
