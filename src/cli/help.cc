// rose help: prints a command's help, the man pages, the shell completions and the table of options.
#include <fmt/format.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/help_text.h"
#include "cli/man.h"

namespace rose::cli {
namespace {

struct HelpOptions {
  std::vector<std::string> command;
  std::string man;
  std::optional<std::string> completion;
};

Json option_json(const Option& option) {
  Json json = {{"names", names_of(option)}, {"help", option.help}, {"flag", is_flag(option)}};
  if (!is_flag(option)) json["value"] = value_name(option);
  json["list"] = is_list(option) && !option.one_each;
  json["repeated"] = is_list(option);
  json["required"] = option.required;
  json["positional"] = is_positional(option);
  json["rest"] = option.rest;
  if (!option.choices.empty()) json["choices"] = option.choices;
  if (option.by_commas) json["separator"] = ",";
  if (option.range) json["range"] = {option.range->first, option.range->second};
  if (!option.otherwise.empty()) json["default"] = option.otherwise;
  return json;
}

Json table_json(const Program& program) {
  Json commands = Json::array();
  for_each_command(program, [&](const Command& command, const std::vector<std::string>& words) {
    if (words.empty()) return;
    Json options = Json::array();
    for (const OptionGroup& group : option_groups(program, command))
      for (const Option& option : group.options) {
        options.push_back(option_json(option));
        options.back()["group"] = group.heading;
      }
    commands.push_back({{"command", fmt::format("{}", fmt::join(words, " "))},
                        {"summary", command.summary},
                        {"synopsis", synopsis_of(command)},
                        {"options", std::move(options)},
                        {"commands", command_names(command)},
                        {"examples", command.examples}});
  });
  return {{"version", program.version}, {"commands", std::move(commands)}};
}

Result<int> run_help(const Program& program, const HelpOptions& options, const Common& common) {
  if ((options.man.empty() ? 0 : 1) + (options.completion ? 1 : 0) + (options.command.empty() ? 0 : 1) > 1)
    return fail(ErrorKind::usage, "a command, --man and --completion exclude each other");
  if (!options.man.empty()) {
    ROSE_TRY(const std::vector<std::string> pages, write_man_pages(program, options.man));
    if (common.json) print(json_line({{"folder", options.man}, {"pages", pages}}));
    else if (!common.quiet) print(fmt::format("{}: {} pages\n", options.man, pages.size()));
    return 0;
  }
  if (options.completion) {
    print(completion_script(program, *options.completion));
    return 0;
  }
  ROSE_TRY(const Command* command, find_command(program, options.command));
  print(common.json ? json_line(table_json(program)) : help_text(program, *command, options.command));
  return 0;
}

}  // namespace

Command help_command(const Program& program) {
  auto options = std::make_shared<HelpOptions>();
  std::vector<std::string> names;
  for_each_command(program, [&](const Command&, const std::vector<std::string>& words) {
    if (!words.empty()) names.push_back(words.back());
  });
  return {
      .name = "help",
      .summary = "Print a command's help; write man pages and completions for shells",
      .synopsis = {"[COMMAND...]", "--man DIR", "--completion bash|zsh|fish", "--json"},
      .description =
          "The Debian package installs the man pages and the completions; the examples below install them without the "
          "package. --json prints the table of all commands and options from which they are generated.",
      .examples = {"rose help dump show", "rose help --man ~/.local/share/man/man1",
                   "rose help --completion bash > ~/.local/share/bash-completion/completions/rose",
                   "rose help --completion zsh > ~/.zfunc/_rose",
                   "rose help --completion fish > ~/.config/fish/completions/rose.fish"},
      .options =
          {
              {.names = "command",
               .slot = &options->command,
               .value = "COMMAND",
               .help = "The command whose help is printed",
               .suggestions = names},
              {.names = "--man",
               .slot = &options->man,
               .value = "DIR",
               .help = "Write a man page for each command into this folder",
               .completes = Completes::folder},
              {.names = "--completion",
               .slot = &options->completion,
               .value = "SHELL",
               .help = "Print the completion script for a shell",
               .choices = {"bash", "zsh", "fish"}},
          },
      .run = [options, &program](const Common& common) { return run_help(program, *options, common); },
  };
}

}  // namespace rose::cli
