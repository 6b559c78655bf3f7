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

void add_heal(CLI::App& app, Action& action) {
  CLI::App* command = add_command(app, "heal", "Undo what a killed rose left behind: namespaces, cgroups, processes, filters",
                                  "  rose heal\n  rose heal --json");
  command->callback([&action] { action = [](const Common& c) { return run_heal(c); }; });
}

}  // namespace rose::cli
