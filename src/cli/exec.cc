// rose exec: the entry point of a container or unit whose syscalls a run is to change.
#include <cstdlib>

#include "cli/command.h"
#include "inject/door.h"

namespace rose::cli {
namespace {

struct ExecOptions {
  std::string node;
  std::string socket;
  std::vector<std::string> command;
};

Result<int> run_exec(const ExecOptions& options) {
  std::string socket = options.socket;
  if (const char* given = std::getenv("ROSE_EXEC_SOCKET"); socket.empty() && given != nullptr) socket = given;
  return Unexpected(inject::enter(socket, options.node, options.command));
}

}  // namespace

void add_exec(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExecOptions>();
  CLI::App* command = add_command(
      app, "exec",
      "Become a command whose syscalls a running schedule may change: the entry point of a container or unit that a node attaches to "
      "(attach = { ..., exec = true }). Without a run, or when it wants nothing of the node, the command is executed as it is",
      "  rose exec --node n1 -- ./server --port 7000\n"
      "  docker run -v $ROSE_EXEC_SOCKET:/rose.sock -v $ROSE_EXE:/rose IMAGE /rose exec --node n1 --socket /rose.sock -- ./server");
  command->add_option("--node", options->node, "Its name in rose.toml")->required()->type_name("NODE");
  command->add_option("--socket", options->socket, "Where the run listens (default: ROSE_EXEC_SOCKET, which setup commands get)");
  command->add_option("command", options->command, "The command and its arguments, after --")->required()->type_name("CMD");
  command->positionals_at_end();
  command->callback([options, &action] { action = [options](const Common&) { return run_exec(*options); }; });
}

}  // namespace rose::cli
