// rose exec: the entry point of a container or unit. It executes the command so that a run can change its system calls.
#include <cstdlib>

#include "cli/command.h"
#include "inject/exec_socket.h"

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

Command exec_command() {
  auto options = std::make_shared<ExecOptions>();
  return {
      .name = "exec",
      .summary =
          "Execute a command so that a running schedule can change its system calls; for entry points of containers "
          "and units",
      .description =
          "Use it for nodes to which rose attaches (attach = { ..., exec = true }). Without a run, or if the run's "
          "schedule concerns no call of the node, the command is executed unchanged.",
      .examples = {"rose exec --node n1 -- ./server --port 7000",
                   "docker run -v $ROSE_EXEC_SOCKET:/rose.sock -v $ROSE_EXE:/rose IMAGE /rose exec --node n1 --socket "
                   "/rose.sock -- ./server"},
      .options =
          {
              {.names = "--node",
               .slot = &options->node,
               .value = "NODE",
               .help = "The node's name in rose.toml",
               .required = true,
               .completes = Completes::node},
              {.names = "--socket",
               .slot = &options->socket,
               .value = "SOCK",
               .help = "The socket of the run",
               .otherwise = "ROSE_EXEC_SOCKET, which setup commands get",
               .completes = Completes::file},
              {.names = "command",
               .slot = &options->command,
               .value = "CMD",
               .help = "The command and its arguments, after --",
               .required = true,
               .rest = true,
               .completes = Completes::program},
          },
      .environment = {{"ROSE_EXEC_SOCKET", "The socket of the run, unless --socket is given."}},
      .run = [options](const Common&) { return run_exec(*options); },
  };
}

}  // namespace rose::cli
