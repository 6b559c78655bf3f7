// rose heal: undoes what a killed rose left behind.
#include "base/log.h"
#include "cli/command.h"
#include "deploy/deployment.h"

#include <nlohmann/json.hpp>

namespace rose::cli {
namespace {

Result<int> run_heal(const Common& common) {
  ROSE_CHECK(need_root("heal"));
  ROSE_TRY(const deploy::Healed healed, deploy::heal());
  if (common.json) {
    print(nlohmann::ordered_json{{"undone", healed.undone}, {"alive", healed.alive}, {"failed", healed.failed}}.dump() + "\n");
  } else {
    for (const std::string& line : healed.undone) print(line + "\n");
    for (const std::string& line : healed.alive) print(line + " (belongs to a running rose, left alone)\n");
    if (healed.undone.empty() && healed.failed.empty()) print("nothing to heal\n");
  }
  for (const std::string& line : healed.failed) log::warning("{}", line);
  if (!healed.failed.empty())
    return fail(ErrorKind::environment, fmt::format("{} leftovers could not be undone", healed.failed.size()));
  return 0;
}

}  // namespace

Command heal_command() {
  return {
      .name = "heal",
      .summary = "Undo what a killed rose left behind: namespaces, cgroups, processes, filters",
      .examples = {"rose heal", "rose heal --json"},
      .run = run_heal,
  };
}

}  // namespace rose::cli
