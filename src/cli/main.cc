// rose: parses the command line, runs one command, and prints errors once.
#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <string_view>

#include "base/log.h"
#include "cli/command.h"
#include "cli/parse.h"
#include "deploy/guardian.h"

namespace {

using namespace rose;

int complain(const Error& error) {
  log::end_progress();
  log::error(error.message, error.hint);
  return exit_code(error.kind);
}

cli::Program program() {
  return {
      .top =
          {
              .name = "rose",
              .summary = "Reproduce failures that faults of the environment cause in distributed systems",
              .synopsis = {"COMMAND [OPTION...]"},
              .description = "rose records production at very low cost. From the dump of a failure it finds the "
                             "faults that reproduce the failure in a test deployment, and replays them as a "
                             "regression test.",
              .examples = {"rose init --unit my-database", "rose profile -c rose.toml",
                           "rose trace --unit my-database -o dump.bin",
                           "rose diagnose --trace dump.bin -c rose.toml --profile profile.json",
                           "rose replay schedule.toml -c rose.toml"},
              .commands = {cli::init_command(), cli::profile_command(), cli::trace_command(), cli::dump_command(),
                           cli::diagnose_command(), cli::replay_command(), cli::explain_command(),
                           cli::doctor_command(), cli::heal_command(), cli::node_command(), cli::step_command(),
                           cli::exec_command(), cli::worker_command()},
              .environment =
                  {{"TMPDIR", "Run directories are created in its folder rose-runs; /tmp/rose-runs if it is not set."},
                   {"ROSE_CGROUP_PARENT",
                    "The cgroup (v2) folder in which runs create theirs, if rose may not use the root of the mount."},
                   {"ROSE_MASK",
                    "Names of 'rose doctor', separated by commas: capabilities not to use, so that their fallbacks are "
                    "tested."}},
              .files = {{"rose.toml",
                         "The test deployment, its workload and oracle. All keys are described in "
                         "/usr/share/doc/rose/configs/rose-toml.md."},
                        {"schedule.toml",
                         "Faults and the conditions under which they are injected: "
                         "/usr/share/doc/rose/configs/schedule-toml.md."}},
          },
      .version = ROSE_VERSION,
      .released = ROSE_RELEASED,
      .exit_codes = {{0, "Done, or reproduced at the target rate"},
                     {1, "Not reproduced"},
                     {2, "Bad usage, configuration or input file"},
                     {3,
                      "This machine lacks something required; 'rose doctor' shows what is missing and how to get "
                      "it"},
                     {4, "Inconclusive: no verdict was reached"},
                     {70, "A bug in rose"}},
  };
}

int run(int argc, char** argv) {
  cli::Program table = program();
  table.top.commands.push_back(cli::help_command(table));
  cli::note_defaults(table.top);
  cli::Common common;
  const Result<cli::Parsed> parsed = cli::parse(table, common, argc, argv);
  if (!parsed) return complain(parsed.error());
  if (parsed->command == nullptr) {  // --help, --version
    cli::print(parsed->text);
    const Result<void> told = cli::printed();
    return told ? 0 : complain(told.error());
  }
  if (common.quiet && common.verbose)
    return complain({ErrorKind::usage, "--quiet and --verbose exclude each other", ""});
  if (common.quiet) log::set_level(log::Level::quiet);
  if (common.verbose) log::set_level(log::Level::verbose);
  const Result<int> code = parsed->command->run(common);
  log::end_progress();
  if (!code) return complain(code.error());
  // A verdict that the caller cannot read must not look like a success.
  const Result<void> told = cli::printed();
  return told ? *code : complain(told.error());
}

// Opens /dev/null for each standard descriptor that is closed. Otherwise the next file that rose opens, for example a
// report or a lock file, would get the number of that descriptor, and messages or results would be written into it.
void open_standard_descriptors() {
  int fd = -1;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

// Dismisses the guardian on every return from run() and on an exception. If rose aborts or is killed, the destructor
// does not run, and the guardian undoes what is left.
struct GuardianOfThis {
  GuardianOfThis() { deploy::allow_guardian(); }
  GuardianOfThis(const GuardianOfThis&) = delete;
  GuardianOfThis& operator=(const GuardianOfThis&) = delete;
  ~GuardianOfThis() { deploy::dismiss_guardian(); }
};

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  try {
    if (argc > 1 && std::string_view(argv[1]) == deploy::kGuardianCommand) {
      const Result<int> code = deploy::run_guardian(argc, argv);
      return code ? *code : complain(code.error());
    }
    const GuardianOfThis guardian;
    return run(argc, argv);
  } catch (const std::exception& error) {
    // Other folders return errors as values, so an exception means that memory is exhausted or that rose has a bug.
    return complain({rose::ErrorKind::bug, fmt::format("unexpected: {}", error.what()), "please report this"});
  }
}
