// rose: reads the command line, runs one command, prints errors once.
#include <exception>

#include "base/log.h"
#include "cli/command.h"
#include "cli/parse.h"

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
              .summary = "Reproduce failures of distributed systems that something outside them caused",
              .description = "rose reproduces failures of distributed systems that something outside them caused.\n"
                             "It watches production, and from the dump of a failure finds and replays the faults that\n"
                             "make it happen again.",
              .examples = {"rose profile -c rose.toml", "rose diagnose --trace dump.bin -c rose.toml --profile profile.json"},
              .commands = {cli::profile_command(), cli::trace_command(), cli::dump_command(), cli::diagnose_command(),
                           cli::replay_command(), cli::doctor_command(), cli::heal_command(), cli::node_command(), cli::exec_command()},
          },
      .version = std::string("rose ") + ROSE_VERSION,
      .exit_codes = "Exit codes: 0 done or reproduced, 1 not reproduced, 2 bad usage or input, 3 this machine lacks\n"
                    "what is needed, 4 inconclusive, 70 a bug in rose.",
  };
}

int run(int argc, char** argv) {
  const cli::Program table = program();
  cli::Common common;
  const Result<cli::Parsed> parsed = cli::parse(table, common, argc, argv);
  if (!parsed) return complain(parsed.error());
  if (parsed->command == nullptr) {  // --help, --version
    cli::print(parsed->text);
    return 0;
  }
  if (common.quiet && common.verbose) return complain({ErrorKind::usage, "--quiet and --verbose exclude each other", ""});
  if (common.quiet) log::set_level(log::Level::quiet);
  if (common.verbose) log::set_level(log::Level::verbose);
  const Result<int> code = parsed->command->run(common);
  log::end_progress();
  return code ? *code : complain(code.error());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    // Rooms return errors as values; what arrives here is out of memory or a mistake of ours.
    return complain({rose::ErrorKind::bug, fmt::format("unexpected: {}", error.what()), "please report this"});
  }
}
