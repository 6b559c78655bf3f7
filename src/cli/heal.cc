// rose heal: undoes what a killed rose left behind.
#include "base/log.h"
#include "cli/command.h"
#include "deploy/deployment.h"

#include <nlohmann/json.hpp>

namespace rose::cli {
namespace {

Result<int> run_heal(const std::vector<std::string>& names, const Common& common) {
  ROSE_CHECK(need_root("heal"));
  ROSE_TRY(const deploy::Healed healed, deploy::heal(names));
  if (common.json) {
    print(nlohmann::ordered_json{{"undone", healed.undone}, {"alive", healed.alive}, {"unclaimed", healed.unclaimed}, {"failed", healed.failed}}.dump() + "\n");
  } else {
    for (const std::string& line : healed.undone) print(line + "\n");
    for (const std::string& line : healed.alive) print(line + " (belongs to a running rose, left alone)\n");
    if (healed.undone.empty() && healed.failed.empty()) print("nothing to heal\n");
    for (const std::string& line : healed.unclaimed)
      print(fmt::format("{}: no lock says that a rose made it, left alone ('rose heal {}' ends it)\n", line, line.substr(line.rfind(' ') + 1)));
  }
  for (const std::string& line : healed.failed) log::warning("{}", line);
  if (!healed.failed.empty())
    return fail(ErrorKind::environment, fmt::format("{} leftover{} could not be undone", healed.failed.size(), healed.failed.size() == 1 ? "" : "s"));
  return 0;
}

}  // namespace

Command heal_command() {
  auto names = std::make_shared<std::vector<std::string>>();
  return {
      .name = "heal",
      .summary = "Undo what a killed rose left behind: namespaces, cgroups, processes, filters",
      .description =
          "rose cleans up after itself, also after Ctrl-C. When it was killed (SIGKILL, out of memory), the kernel detaches its programs, and "
          "this command undoes the rest: network namespaces, links, cgroups with their processes, containers, filters, paused "
          "processes, limits of descriptors, file systems that were to be full (their files are put back).\n\n"
          "Only what the lock file of a rose that is gone notes is undone, and nothing of a rose that runs. What merely bears such a name is "
          "listed and left alone, until it is named.",
      .examples = {"rose heal", "rose heal rose-1f3a9c"},
      .options =
          {
              {.names = "names", .slot = names.get(), .value = "NAME", .help = "Undo these only, also when no lock says that a rose made them"},
          },
      .run = [names](const Common& common) { return run_heal(*names, common); },
  };
}

}  // namespace rose::cli
