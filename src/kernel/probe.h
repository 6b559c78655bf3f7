// Finds out what this machine can do by trying every feature at small scale, because version numbers and helper lists
// mislead. Each probe is independent and undoes its changes. All probes together take a few seconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rose::kernel {

struct Capability {
  std::string name;  // stable, snake_case; used in `rose doctor --json` and ROSE_MASK
  bool ok = false;
  std::string detail;     // what was tried, the result, and the consequence for rose
  std::string remedy;     // how to get it; "" if ok
  bool untried = false;   // a step failed before the effect of the feature could be observed
  bool required = false;  // rose does not work without it; for other features there is a fallback
};

// Probes all features, in a fixed order. Never fails: without privilege, each result names what is missing.
[[nodiscard]] std::vector<Capability> probe_all();

// Probes one feature. For an unknown name, the result is not ok, and its detail says that the name is unknown.
[[nodiscard]] Capability probe(std::string_view name);

[[nodiscard]] std::vector<std::string> probe_names();

// True if the environment variable ROSE_MASK, a list such as "tcx,uprobe_multi", contains `name`. rose must then behave
// as if the kernel lacked the feature, so that fallbacks can be tested.
[[nodiscard]] bool masked(std::string_view name);

}  // namespace rose::kernel
