#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace rose::cli {

bool is_flag(const Option& option) { return std::holds_alternative<bool*>(option.slot); }

bool is_list(const Option& option) {
  return std::holds_alternative<std::vector<int>*>(option.slot) ||
         std::holds_alternative<std::vector<std::string>*>(option.slot);
}

bool is_positional(const Option& option) { return !option.names.starts_with('-'); }

std::vector<std::string> names_of(const Option& option) { return split(option.names, ','); }

std::string main_name(const Option& option) {
  for (const std::string& name : names_of(option))
    if (name.starts_with("--")) return name;
  return names_of(option).front();
}

void note_defaults(Command& command) {
  for (Option& option : command.options) {
    if (!option.otherwise.empty() || option.required) continue;
    if (const auto* number = std::get_if<int*>(&option.slot)) option.otherwise = std::to_string(**number);
    if (const auto* text = std::get_if<std::string*>(&option.slot)) option.otherwise = **text;
  }
  for (Command& inner : command.commands) note_defaults(inner);
}

std::string value_name(const Option& option) { return option.value.empty() ? "VALUE" : option.value; }

std::vector<std::string> command_names(const Command& command) {
  std::vector<std::string> names;
  for (const Command& inner : command.commands) names.push_back(inner.name);
  return names;
}

const Command* inner_named(const Command& command, std::string_view name) {
  const auto found =
      std::find_if(command.commands.begin(), command.commands.end(), [&](const Command& c) { return c.name == name; });
  return found == command.commands.end() ? nullptr : &*found;
}

std::string full_name(const Program& program, const std::vector<std::string>& words) {
  std::string name = program.top.name;
  for (const std::string& word : words) name += " " + word;
  return name;
}

Result<const Command*> find_command(const Program& program, const std::vector<std::string>& words) {
  const Command* at = &program.top;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Command* inner = inner_named(*at, words[i]);
    if (inner == nullptr) {
      const std::string outer = full_name(program, {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i)});
      if (at->commands.empty())
        return fail(ErrorKind::usage, fmt::format("'{}' has no subcommands: remove '{}'", outer, words[i]),
                    fmt::format("see '{} --help'", outer));
      const std::string near = did_you_mean(words[i], command_names(*at));
      const std::string all =
          fmt::format("{}: {}", i == 0 ? "the commands are" : fmt::format("the commands of '{}' are", outer),
                      fmt::join(command_names(*at), ", "));
      return fail(ErrorKind::usage,
                  fmt::format("there is no command '{}{}'",
                              i == 0 ? "" : outer.substr(program.top.name.size() + 1) + " ", words[i]),
                  near.empty() ? all : near);
    }
    at = inner;
  }
  return at;
}

namespace {
void visit_commands(const Command& command, std::vector<std::string>& words,
                    const std::function<void(const Command&, const std::vector<std::string>&)>& visit) {
  visit(command, words);
  for (const Command& inner : command.commands) {
    words.push_back(inner.name);
    visit_commands(inner, words, visit);
    words.pop_back();
  }
}
}  // namespace

void for_each_command(const Program& program,
                      const std::function<void(const Command&, const std::vector<std::string>&)>& visit) {
  std::vector<std::string> words;
  visit_commands(program.top, words, visit);
}

std::vector<Option> common_options(Common& common) {
  return {
      {.names = "-v,--verbose", .slot = &common.verbose, .help = "Print more on stderr"},
      {.names = "-q,--quiet", .slot = &common.quiet, .help = "Print only warnings and errors on stderr"},
      {.names = "--json", .slot = &common.json, .help = "Print the result as one JSON object on stdout"},
  };
}

}  // namespace rose::cli
