// rose node: stop, start, restart, kill or look at a node from inside a running deployment.
#include <cstdlib>

#include "cli/command.h"
#include "deploy/deployment.h"

#include <nlohmann/json.hpp>

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
  if (common.json)
    print(nlohmann::ordered_json{{"node", options.node}, {"action", options.action}, {"answer", answer}}.dump() + "\n");
  else if (!common.quiet)
    print(answer + "\n");
  return 0;
}

}  // namespace

void add_node(CLI::App& app, Action& action) {
  auto options = std::make_shared<NodeOptions>();
  CLI::App* command = add_command(app, "node", "Act on a node of the running deployment; such stops are planned, never faults",
                                  "  rose node restart n2\n  rose node status n1");
  command->add_option("action", options->action, "What to do")->required()->type_name("ACTION")
      ->check(CLI::IsMember({"stop", "start", "restart", "kill", "status"}));
  command->add_option("node", options->node, "Its name in rose.toml")->required()->type_name("NODE");
  command->callback([options, &action] { action = [options](const Common& c) { return run_node(*options, c); }; });
}

}  // namespace rose::cli
