// What this machine can do: every capability tried for real at small scale, since version numbers and helper
// lists mislead. Each probe stands alone, undoes what it made, and all together take a few seconds at most.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rose::kernel {

struct Capability {
  std::string name;  // stable, snake_case: `rose doctor --json` and ROSE_MASK use it
  bool ok = false;
  std::string detail;     // what was tried and found, and what follows for rose
  std::string remedy;     // how to get it; "" when ok
  bool untried = false;   // something else failed on the way
  bool required = false;  // without it rose does not run at all; otherwise something else takes its place
};

// In a fixed order. Never fails: without privilege each capability says what it lacks.
[[nodiscard]] std::vector<Capability> probe_all();

// One of them by name; a name that does not exist is "not ok" and says so.
[[nodiscard]] Capability probe(std::string_view name);

[[nodiscard]] std::vector<std::string> probe_names();

// Is `name` in the list of the environment variable ROSE_MASK ("tcx,uprobe_multi")? Then rose must do as if
// the kernel lacked it, so that fallbacks can be tested.
[[nodiscard]] bool masked(std::string_view name);

}  // namespace rose::kernel
