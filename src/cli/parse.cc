#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "cli/help_text.h"

namespace rose::cli {
namespace {

constexpr std::uint64_t kMostInt = std::numeric_limits<int>::max();

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void limit_values(CLI::Option& added, const Option& option) {
  if (!option.choices.empty())
    added.check(CLI::Validator(
        [choices = option.choices](const std::string& text) {
          return std::find(choices.begin(), choices.end(), text) != choices.end()
                     ? ""
                     : fmt::format("'{}' is not one of {}", text, fmt::join(choices, ", "));
        },
        ""));
  // Checked before CLI11's own conversion, whose error names neither the option nor the reason.
  if (std::holds_alternative<std::vector<int>*>(option.slot))
    added.check(CLI::Validator(
        [](const std::string& text) {
          return whole_number(text).value_or(kMostInt + 1) <= kMostInt
                     ? ""
                     : fmt::format("'{}' is not a whole number", text);
        },
        ""));
  if (!option.range) return;
  added.check(CLI::Validator(
      [range = *option.range](const std::string& text) {
        const auto [least, most] = range;
        const std::optional<std::uint64_t> number = whole_number(text);
        return number && *number >= least && *number <= most
                   ? ""
                   : fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
      },
      ""));
}

void add_option(CLI::App& app, const Option& option) {
  if (const auto* flag = std::get_if<bool*>(&option.slot)) {
    app.add_flag(option.names, **flag)->disable_flag_override();
    return;
  }
  CLI::Option* added = std::visit(
      [&](auto* place) -> CLI::Option* {
        if constexpr (std::is_same_v<decltype(place), bool*>) return nullptr;
        else return app.add_option(option.names, *place);
      },
      option.slot);
  if (!option.value.empty()) added->type_name(option.value);
  if (option.required) added->required();
  if (option.one_each) added->allow_extra_args(false);
  if (option.by_commas) added->delimiter(',');
  limit_values(*added, option);
}

void add_command(CLI::App& app, const Command& command, const Program& program, const std::vector<Option>& common) {
  CLI::App* added = app.add_subcommand(command.name);
  for (const Option& option : common) add_option(*added, option);
  added->set_version_flag("--version", program.version);
  for (const Option& option : command.options) {
    add_option(*added, option);
    if (option.rest) added->positionals_at_end();
  }
  for (const Command& inner : command.commands) add_command(*added, inner, program, common);
  if (!command.commands.empty()) added->require_subcommand(0, 1);
}

// The words of the command line, without the program's name.
using Words = std::vector<std::string>;

// The command that the line names, such as `dump show`, with its name; the program itself if it names none.
std::pair<const Command*, std::string> named_by(const Program& program, const Words& words) {
  std::pair<const Command*, std::string> at{&program.top, ""};
  for (const std::string& word : words) {
    const Command* inner = inner_named(*at.first, word);
    if (inner == nullptr) break;
    at = {inner, at.second + (at.second.empty() ? "" : " ") + word};
  }
  return at;
}

// The word where a subcommand is expected, such as "bogus" in `rose dump bogus`; "" if there is none or if it is a
// subcommand.
std::string unknown_inner(const Command& command, const Words& words) {
  if (words.size() < 2 || command.commands.empty() || words[1].empty() || words[1].front() == '-') return "";
  return inner_named(command, words[1]) != nullptr ? "" : words[1];
}

std::vector<std::string> long_options(const Command& command) {
  Common ignored;
  std::vector<std::string> names = {"--help", "--version"};
  const auto add = [&](const std::vector<Option>& options) {
    for (const Option& option : options)
      for (std::string& name : names_of(option))
        if (name.starts_with("--")) names.push_back(std::move(name));
  };
  add(common_options(ignored));
  add(command.options);
  return names;
}

// The unknown option, such as "--uint" in `rose trace --uint x`, for which CLI11 says "arguments were not expected: x
// --uint".
std::string unknown_option(const Command& command, const Words& words) {
  const std::vector<std::string> known = long_options(command);
  for (const std::string& word : words) {
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    std::string option = word.substr(0, word.find('='));
    if (std::find(known.begin(), known.end(), option) == known.end()) return option;
  }
  return "";
}

// The most similar valid name.
std::string suggestion(const Program& program, const Words& words) {
  const std::vector<std::string> names = command_names(program.top);
  if (words.empty()) return fmt::format("the commands are: {}; see 'rose --help'", fmt::join(names, ", "));
  const Command* outer = inner_named(program.top, words.front());
  if (outer == nullptr) {
    const std::string near = did_you_mean(words.front(), names);
    return near.empty() ? fmt::format("the commands are: {}", fmt::join(names, ", ")) : near;
  }
  if (const std::string inner = unknown_inner(*outer, words); !inner.empty()) {
    const std::string near = did_you_mean(inner, command_names(*outer));
    return near.empty()
               ? fmt::format("the commands of 'rose {}' are: {}", outer->name, fmt::join(command_names(*outer), ", "))
               : near;
  }
  const auto [command, name] = named_by(program, words);
  const std::string near = did_you_mean(unknown_option(*command, words), long_options(*command));
  return fmt::format("{}{}see 'rose {} --help'", near, near.empty() ? "" : " ", name);
}

// The parts before and after ": " in CLI11's message `before: rest`.
std::pair<std::string, std::string> halves(const std::string& text) {
  const std::size_t at = text.find(": ");
  return at == std::string::npos ? std::pair(text, std::string()) : std::pair(text.substr(0, at), text.substr(at + 2));
}

std::optional<Option> option_called(const std::string& name, const std::vector<Option>& options) {
  for (const Option& option : options)
    for (const std::string& each : names_of(option))
      if (each == name) return option;
  return std::nullopt;
}

// CLI11's messages about missing or extra arguments name neither the command nor the argument.
std::string plain_words(const Command& command, const std::string& name, const CLI::ParseError& error) {
  const auto [before, rest] = halves(error.what());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::string missing = before.substr(0, before.find(" is required"));
    if (const std::optional<Option> option = option_called(missing, command.options))
      return fmt::format("'rose {}' needs {}{}: {}", name, is_positional(*option) ? "its " : missing + " ",
                         value_name(*option), option->help);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (const std::optional<Option> option = option_called(before, command.options))
      return fmt::format("{}: its {} is missing", before, value_name(*option));
    if (const std::size_t at = before.find(" was given a disallowed flag override"); at != std::string::npos)
      return fmt::format("--{} takes no value", before.substr(0, at));
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !rest.empty())
    return fmt::format("'rose {}' {} '{}'", name,
                       rest.front() == '-' ? "has no option" : "takes no further argument:", rest);
  return error.what();
}

// CLI11 says "A subcommand is required" for an unknown command.
std::string complaint(const Program& program, const CLI::ParseError& error, const Words& words) {
  if (words.empty() || words.front().empty()) return "no command is named";
  if (words.front().front() == '-') {
    const std::string option = words.front().substr(0, words.front().find('='));
    Common ignored;
    return option_called(option, common_options(ignored))
               ? fmt::format("options follow the command: 'rose COMMAND {}'", option)
               : fmt::format("'rose' itself has no option '{}'", option);
  }
  const Command* outer = inner_named(program.top, words.front());
  if (outer == nullptr) return fmt::format("there is no command '{}'", words.front());
  if (const std::string inner = unknown_inner(*outer, words); !inner.empty())
    return fmt::format("there is no command '{} {}'", outer->name, inner);
  const auto [command, name] = named_by(program, words);
  const std::string option = unknown_option(*command, words);
  return option.empty() ? plain_words(*command, name, error)
                        : fmt::format("'rose {}' has no option '{}'", name, option);
}

}  // namespace

Result<Parsed> parse(const Program& program, Common& common, int argc, const char* const* argv) {
  const Command& top = program.top;
  CLI::App app;
  app.set_version_flag("--version", program.version);
  app.require_subcommand(1);
  const std::vector<Option> of_all = common_options(common);
  for (const Command& command : top.commands) add_command(app, command, program, of_all);

  const Words words(argv + std::min(argc, 1), argv + argc);
  // The command that CLI11 has selected.
  const auto chosen = [&] {
    std::pair<const Command*, Words> at{&top, {}};
    for (const CLI::App* inner = &app; !inner->get_subcommands().empty();) {
      inner = inner->get_subcommands().front();
      at.second.push_back(inner->get_name());
      at.first = inner_named(*at.first, inner->get_name());
    }
    return at;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto [command, name] = chosen();
    return Parsed{nullptr, help_text(program, *command, name)};
  } catch (const CLI::CallForVersion&) {
    return Parsed{nullptr, fmt::format("{} {}\n", top.name, program.version)};
  } catch (const CLI::ParseError& error) {
    return fail(ErrorKind::usage, complaint(program, error, words), suggestion(program, words));
  }
  return Parsed{chosen().first, ""};
}

}  // namespace rose::cli
