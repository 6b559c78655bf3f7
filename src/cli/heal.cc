// rose heal: undoes what a killed rose left behind.
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "deploy/deployment.h"

namespace rose::cli {
namespace {

Result<int> run_heal(const std::vector<std::string>& names, bool forget, const Common& common) {
  ROSE_CHECK(need_root("heal"));
  ROSE_TRY(const deploy::Healed healed, deploy::heal(names, forget));
  if (common.json) {
    print(json_line({{"undone", healed.undone},
                     {"alive", healed.alive},
                     {"unclaimed", healed.unclaimed},
                     {"failed", healed.failed},
                     {"forgotten", healed.forgotten}}));
  } else {
    for (const std::string& line : healed.undone) print(printable(line) + "\n");
    for (const std::string& line : healed.alive) print(printable(line) + " (belongs to a running rose, left alone)\n");
    if (healed.undone.empty() && healed.failed.empty() && healed.forgotten.empty()) print("nothing to heal\n");
    for (const std::string& line : healed.forgotten) print(fmt::format("{}: forgotten\n", printable(line)));
    for (const std::string& line : healed.unclaimed)
      print(fmt::format("{}: no lock shows that a rose created it, left alone ('rose heal {}' removes it)\n",
                        printable(line), printable(line.substr(line.rfind(' ') + 1))));
  }
  for (const std::string& line : healed.failed) log::warning("{}", line);
  if (!healed.failed.empty())
    return fail(
        ErrorKind::environment,
        fmt::format("{} leftover{} could not be undone", healed.failed.size(), healed.failed.size() == 1 ? "" : "s"),
        healed.by_engines
            ? "if their container engine no longer exists, 'rose heal --forget' lists them and forgets them"
            : "");
  return 0;
}

}  // namespace

Command heal_command() {
  auto names = std::make_shared<std::vector<std::string>>();
  auto forget = std::make_shared<bool>(false);
  return {
      .name = "heal",
      .summary = "Undo what a killed rose left behind: namespaces, cgroups, processes, filters",
      .description =
          "rose cleans up after itself, also after Ctrl-C. During a teardown that hangs, another Ctrl-C ends that "
          "teardown. During other cleanup, two more Ctrl-C make rose exit at once. If rose exited in this way or was "
          "killed (SIGKILL, out of memory), the kernel detaches rose's programs, rose's guardian undoes harmful "
          "changes, and this command undoes the rest: network namespaces, links, cgroups with their processes, "
          "containers, filters, paused processes, descriptor limits, and file systems for full disks (their files are "
          "restored).\n\n"
          "It undoes only what is listed in the lock file of a rose process that has ended, and nothing that belongs "
          "to a running one. Other resources whose name begins with 'rose' are listed and left alone unless you name "
          "them.\n\n"
          "If something could not be undone, 'rose heal' exits with status 3, and the next 'rose heal' tries again. If "
          "a container engine no longer exists, --forget lists what only that engine could have removed, and forgets "
          "it.",
      .examples = {"rose heal", "rose heal rose-1f3a9c", "rose heal --forget"},
      .options =
          {
              {.names = "names",
               .slot = names.get(),
               .value = "NAME",
               .help = "Undo only these resources, even if no lock file shows that rose created them"},
              {.names = "--forget",
               .slot = forget.get(),
               .help = "List and forget leftovers whose container engine no longer exists"},
          },
      .run = [names, forget](const Common& common) { return run_heal(*names, *forget, common); },
  };
}

}  // namespace rose::cli
