// rose exec: the entry point for a container or unit whose system calls a run changes.
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
          "Execute a command whose system calls a running schedule may change: the entry point of a container or unit",
      .description =
          "For nodes that rose attaches to (attach = { ..., exec = true }). Without a run, or if it needs nothing from "
          "the node, the command is executed unchanged.",
      .examples = {"rose exec --node n1 -- ./server --port 7000",
                   "docker run -v $ROSE_EXEC_SOCKET:/rose.sock -v $ROSE_EXE:/rose IMAGE /rose exec --node n1 --socket "
                   "/rose.sock -- ./server"},
      .options =
          {
              {.names = "--node",
               .slot = &options->node,
               .value = "NODE",
               .help = "Its name in rose.toml",
               .required = true,
               .completes = Completes::node},
              {.names = "--socket",
               .slot = &options->socket,
               .value = "SOCK",
               .help = "Where the run listens",
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
      .environment = {{"ROSE_EXEC_SOCKET", "Where the run listens, unless --socket is given."}},
      .run = [options](const Common&) { return run_exec(*options); },
  };
}

}  // namespace rose::cli
