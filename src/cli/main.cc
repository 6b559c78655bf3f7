// rose: reads the command line, runs one command, prints errors once.
#include <algorithm>
#include <exception>

#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"

namespace {

using rose::cli::Action;

int report(const rose::Error& error) {
  rose::log::end_progress();
  rose::log::error(error.message, error.hint);
  return rose::exit_code(error.kind);
}

// "bogus" in `rose dump bogus`: a word where a command's own commands stand; else nullptr.
const char* unknown_inner(const CLI::App* command, int argc, char** argv) {
  if (argc < 3 || argv[2][0] == '-' || argv[2][0] == '\0') return nullptr;
  const std::vector<const CLI::App*> inner = command->get_subcommands([](const CLI::App*) { return true; });
  const bool known = std::any_of(inner.begin(), inner.end(), [&](const CLI::App* app) { return app->get_name() == argv[2]; });
  return inner.empty() || known ? nullptr : argv[2];
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  return names;
}

// The command that the line names: `dump show` of `rose dump show x`.
const CLI::App* command_of(const CLI::App& app, int argc, char** argv, std::string& name) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::vector<const CLI::App*> inner = at->get_subcommands([&](const CLI::App* c) { return c->get_name() == argv[i]; });
    if (inner.empty()) break;
    at = inner.front();
    name += fmt::format("{}{}", name.empty() ? "" : " ", argv[i]);
  }
  return at == &app ? nullptr : at;
}

// "--uint" of `rose trace --uint x`, of which CLI11 says "arguments were not expected: x --uint".
std::string unknown_option(const CLI::App& command, int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word(argv[i]);
    if (!word.starts_with("--")) continue;
    const std::string option(word.substr(0, word.find('=')));
    if (command.get_option_no_throw(option) == nullptr) return option;
  }
  return "";
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What the user typed when CLI11 says that it expected something else.
std::string suggestion(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> names = names_of(app);
  if (argc < 2) return "one of: " + fmt::format("{}", fmt::join(names, ", "));
  std::string hint = rose::did_you_mean(argv[1], names);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() != argv[1]) continue;
    if (const char* inner = unknown_inner(command, argc, argv)) {
      const std::vector<std::string> inner_names = names_of(*command);
      const std::string near = rose::did_you_mean(inner, inner_names);
      return near.empty() ? fmt::format("the commands of 'rose {}' are: {}", argv[1], fmt::join(inner_names, ", ")) : near;
    }
    std::string name;
    const CLI::App* innermost = command_of(app, argc, argv, name);
    const std::string near = rose::did_you_mean(unknown_option(*innermost, argc, argv), options_of(*innermost));
    return fmt::format("{}{}see 'rose {} --help'", near, near.empty() ? "" : " ", name);
  }
  return hint.empty() ? fmt::format("the commands are: {}", fmt::join(names, ", ")) : hint;
}

// CLI11 says "A subcommand is required" to a word that is none.
std::string complaint(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "-";
  if (first.empty() || first.front() == '-') return error.what();
  for (const CLI::App* command : app.get_subcommands({}))
    if (command->get_name() == first) {
      if (const char* inner = unknown_inner(command, argc, argv)) return fmt::format("there is no command '{} {}'", first, inner);
      std::string name;
      const std::string option = unknown_option(*command_of(app, argc, argv, name), argc, argv);
      return option.empty() ? error.what() : fmt::format("'rose {}' has no option '{}'", name, option);
    }
  return fmt::format("there is no command '{}'", first);
}

int run(int argc, char** argv) {
  CLI::App app("rose reproduces failures of distributed systems that something outside them caused.\n"
               "It watches production, and from the dump of a failure finds and replays the faults that\n"
               "make it happen again.",
               "rose");
  app.set_version_flag("--version", std::string("rose ") + ROSE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer("Exit codes: 0 done or reproduced, 1 not reproduced, 2 bad usage or input, 3 this machine lacks\n"
             "what is needed, 4 inconclusive, 70 a bug in rose.\n\n"
             "Examples:\n  rose profile -c rose.toml\n  rose diagnose --trace dump.bin -c rose.toml --profile profile.json");
  Action action;
  rose::cli::add_profile(app, action);
  rose::cli::add_trace(app, action);
  rose::cli::add_dump(app, action);
  rose::cli::add_diagnose(app, action);
  rose::cli::add_replay(app, action);
  rose::cli::add_doctor(app, action);
  rose::cli::add_heal(app, action);
  rose::cli::add_node(app, action);
  rose::cli::add_exec(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {  // --help, --version
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return report({rose::ErrorKind::usage, complaint(app, error, argc, argv), suggestion(app, argc, argv)});
  }
  const rose::cli::Common& common = rose::cli::common();
  if (common.quiet && common.verbose)
    return report({rose::ErrorKind::usage, "--quiet and --verbose exclude each other", ""});
  if (common.quiet) rose::log::set_level(rose::log::Level::quiet);
  if (common.verbose) rose::log::set_level(rose::log::Level::verbose);
  const rose::Result<int> code = action(common);
  rose::log::end_progress();
  return code ? *code : report(code.error());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    // Rooms return errors as values; what arrives here is out of memory or a mistake of ours.
    return report({rose::ErrorKind::bug, fmt::format("unexpected: {}", error.what()), "please report this"});
  }
}
