// rose node: stops, starts, restarts, kills or shows a node from inside a running deployment.
#include <cstdlib>

#include "base/json.h"
#include "cli/command.h"
#include "deploy/deployment.h"

namespace rose::cli {
namespace {

struct NodeOptions {
  std::string action;
  std::string node;
};

Result<int> run_node(const NodeOptions& options, const Common& common) {
  const char* run_dir = std::getenv("ROSE_RUN_DIR");
  if (run_dir == nullptr || *run_dir == '\0')
    return fail(ErrorKind::usage, "ROSE_RUN_DIR is not set: there is no running deployment to act on",
                "'rose node' is for workload, incident and oracle commands, which get it from rose");
  ROSE_TRY(const std::string answer, deploy::node_request(run_dir, options.action, options.node));
  if (common.json) print(json_line({{"node", options.node}, {"action", options.action}, {"answer", answer}}));
  else if (!common.quiet) print(printable(answer) + "\n");
  return 0;
}

}  // namespace

Command node_command() {
  auto options = std::make_shared<NodeOptions>();
  return {
      .name = "node",
      .summary =
          "Stop, start, restart, kill or query a node of the running deployment; such stops count as planned, "
          "not as faults",
      .description =
          "Use it in workload, incident and oracle commands, which find the deployment through ROSE_RUN_DIR. start, "
          "stop, restart and kill return when they are done; status prints whether the node runs.",
      .examples = {"rose node restart n2", "rose node status n1"},
      .options =
          {
              {.names = "action",
               .slot = &options->action,
               .value = "ACTION",
               .help = "What to do",
               .required = true,
               .choices = {"stop", "start", "restart", "kill", "status"}},
              {.names = "node",
               .slot = &options->node,
               .value = "NODE",
               .help = "The node's name in rose.toml",
               .required = true,
               .completes = Completes::node},
          },
      .environment = {{"ROSE_RUN_DIR", "The run's directory; rose sets it for every command that it starts."}},
      .run = [options](const Common& common) { return run_node(*options, common); },
  };
}

}  // namespace rose::cli
