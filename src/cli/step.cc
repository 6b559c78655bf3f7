// rose step: called from a workload; waits until the schedule's order allows this step.
#include <poll.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/held_child.h"
#include "base/json.h"
#include "cli/command.h"
#include "deploy/deployment.h"

namespace rose::cli {
namespace {

struct StepOptions {
  std::string name;
  std::vector<std::string> command;
};

// Runs the command and waits for its end. Returns its exit status, or 128 + the signal that ended it, as a shell does.
Result<int> run_to_end(const std::vector<std::string>& command) {
  ROSE_TRY(HeldChild child, HeldChild::fork_held(command, HeldChild::Kind::shares_terminal));
  ROSE_CHECK(child.release());
  pollfd ended{child.pidfd(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 1) {
  }
  const int status = child.end(0).value_or(0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Result<int> run_step(StepOptions options, const Common& common) {
  if (!options.command.empty() && options.command.front() == "--") options.command.erase(options.command.begin());
  const char* run_dir = std::getenv("ROSE_RUN_DIR");
  if (run_dir == nullptr || *run_dir == '\0')
    return fail(ErrorKind::usage, "ROSE_RUN_DIR is not set: there is no run with an order",
                "'rose step' is for workload and incident commands, which get it from rose");
  ROSE_CHECK(deploy::step_request(run_dir, options.name, false));
  int status = 0;
  if (!options.command.empty()) {
    ROSE_TRY(status, run_to_end(options.command));
  }
  ROSE_CHECK(deploy::step_request(run_dir, options.name, true));
  if (common.json) print(json_line({{"step", options.name}, {"status", status}}));
  return status;
}

}  // namespace

Command step_command() {
  auto options = std::make_shared<StepOptions>();
  return {
      .name = "step",
      .summary = "Wait, inside a workload, until the schedule's order allows this step",
      .synopsis = {"NAME", "NAME -- CMD [ARG...]"},
      .description =
          "A schedule's `order` names steps of the workload together with events and faults: order = \"written * cut * "
          "read\". 'rose step read' in the workload's script returns when everything that the order puts before this "
          "step has happened. The step has happened at that moment. With a command, 'rose step' runs the command when "
          "it is the step's turn. The step has then happened when the command has ended, whatever its exit status; "
          "'rose step' exits with that status.\n\nA step happens once. If its turn never comes, it waits until the run "
          "ends, and the result then shows what it was waiting for.",
      .examples = {"rose step written", "rose step read -- ./client get key"},
      .options =
          {
              {.names = "name",
               .slot = &options->name,
               .value = "NAME",
               .help = "The step's name in `order`",
               .required = true},
              {.names = "command",
               .slot = &options->command,
               .value = "CMD",
               .help = "After --: the command to run in this step",
               .rest = true,
               .completes = Completes::program},
          },
      .environment = {{"ROSE_RUN_DIR", "The run's directory; rose sets it for every command that it starts."}},
      .run = [options](const Common& common) { return run_step(*options, common); },
  };
}

}  // namespace rose::cli
