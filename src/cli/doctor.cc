// rose doctor: reports what this machine can do, by trying every capability.
#include "base/json.h"
#include "cli/command.h"
#include "deploy/disk.h"
#include "deploy/engine.h"
#include "kernel/probe.h"

#include <algorithm>

namespace rose::cli {
namespace {

// Asks the container engine whether nodes with an image can be started.
kernel::Capability containers() {
  kernel::Capability engine;
  engine.name = "container_engine";
  if (const auto found = deploy::find_engine({})) {
    engine.ok = true;
    engine.detail = fmt::format("{} runs nodes that have an image{}", found->version,
                                found->podman ? "" : ", with network = \"host\" only");
  } else {
    engine.detail = found.error().message;
    engine.remedy = found.error().hint;
  }
  return engine;
}

// The capability of faults that need rose's own disks: power loss and slow disks.
kernel::Capability disks(const char* name, const Result<void>& found, const char* with, const char* without) {
  kernel::Capability capability;
  capability.name = name;
  capability.ok = found.has_value();
  capability.detail = found ? with : fmt::format("{}; {}", found.error().message, without);
  if (!found) capability.remedy = found.error().hint;
  return capability;
}

Result<int> run_doctor(const Common& common) {
  std::vector<kernel::Capability> capabilities = kernel::probe_all();
  capabilities.push_back(
      disks("own_disk", deploy::Disk::check(), "crashes with power loss work", "crashes with `lose` are refused"));
  capabilities.push_back(disks("slow_disk", deploy::PacedFile::check(),
                               "a file was as slow as requested; disk-slow faults work",
                               "disk-slow faults are refused"));
  capabilities.push_back(containers());
  std::string missing;
  for (const kernel::Capability& c : capabilities)
    if (c.required && !c.ok) missing += (missing.empty() ? "" : ", ") + c.name;
  if (common.json) {
    Json list = Json::array();
    for (const kernel::Capability& c : capabilities)
      list.push_back(
          {{"name", c.name}, {"ok", c.ok}, {"detail", c.detail}, {"remedy", c.remedy}, {"required", c.required}});
    print(json_line({{"capabilities", std::move(list)}, {"ready", missing.empty()}}));
    return 0;
  }
  std::size_t width = 0;
  for (const kernel::Capability& c : capabilities) width = std::max(width, c.name.size());
  for (const kernel::Capability& c : capabilities) {
    std::string line = fmt::format("{:<4} {:<{}}  {}", c.ok ? "ok" : "no", c.name, width, c.detail);
    if (!c.ok && !c.remedy.empty()) line += fmt::format("; to get it: {}", c.remedy);
    print(line + "\n");
  }
  print(missing.empty() ? "rose works here\n" : fmt::format("rose cannot work here without: {}\n", missing));
  return 0;
}

}  // namespace

Command doctor_command() {
  return {
      .name = "doctor",
      .summary = "Try each capability that rose needs on this machine, and say how to get what is missing",
      .description =
          "Each line is a capability: available (ok) or not (no), the result of the attempt, and how to get it if it "
          "is missing. The last line says whether rose works on this machine. If a missing capability is not required, "
          "rose uses a substitute. The exit code is 0 whether or not rose works.",
      .examples = {"rose doctor", "rose doctor --json"},
      .run = run_doctor,
  };
}

}  // namespace rose::cli
