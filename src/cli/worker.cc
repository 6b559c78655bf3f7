// rose worker: makes runs for a diagnosis that runs on another machine.
#include "engine/worker.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/cancel.h"
#include "cli/command.h"

namespace rose::cli {
namespace {

Result<int> run_worker() {
  if (::isatty(STDIN_FILENO) != 0 || ::isatty(STDOUT_FILENO) != 0)
    return fail(ErrorKind::usage,
                "a worker communicates with 'rose diagnose' on its standard input and output, not with a terminal",
                "'rose diagnose --engine' starts it");
  ROSE_CHECK(cancel::install());
  export_own_name();
  // The worker exchanges messages with the diagnosis on stdin and stdout, so the output of runs must not go there.
  Fd in(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  Fd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!in || !out || !nothing || ::dup2(nothing.get(), STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return fail_errno(ErrorKind::environment, "cannot use the standard input and output", errno);
  const engine::WorkerOptions options{.version = ROSE_VERSION, .check = [] {
                                        const Result<void> root = need_root("worker");
                                        return root ? need_process_ids("worker") : root;
                                      }};
  ROSE_CHECK(engine::serve(std::move(in), std::move(out), options));
  return 0;
}

}  // namespace

Command worker_command() {
  return {
      .name = "worker",
      .summary = "Make runs on this machine for a diagnosis on another one; started by 'rose diagnose --engine'",
      .description =
          "'rose diagnose --engine' starts workers on other machines by srun, ssh, kubectl or a command. A worker "
          "first reads the folder of the configuration from its standard input, then one schedule after another. It "
          "makes a run of each schedule and writes the result, including traces, to its standard output. When its "
          "input ends, it undoes its current run and exits.\n\nIt needs root, and the kernel features that 'rose "
          "doctor' lists. If a worker was killed, the next worker on that host removes what it left behind, as 'rose "
          "heal' does.",
      .examples = {"rose diagnose --trace dump.bin -c rose.toml --engine 'rose worker' --workers 2",
                   "rose diagnose --trace dump.bin -c rose.toml --engine 'lxc exec lab -- rose worker'"},
      .options = {},
      .run = [](const Common&) { return run_worker(); },
  };
}

}  // namespace rose::cli
