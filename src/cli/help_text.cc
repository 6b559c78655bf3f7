#include "cli/help_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace rose::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kHelpColumn = 28;

// "a, b or c".
std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

// A row: the head on the left and the help beside it, or below if the head is long.
std::string row(const std::string& head, const std::string& help) {
  std::string text = "  " + head;
  const std::string indent(kHelpColumn, ' ');
  bool beside = text.size() + 2 <= kHelpColumn;
  if (beside) text.resize(kHelpColumn, ' ');
  for (const std::string& line : wrapped(help, kWidth - kHelpColumn)) {
    text += (beside ? "" : "\n" + indent) + line;
    beside = false;
  }
  return text + "\n";
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    for (const std::string& line : wrapped(text.substr(0, end), kWidth)) out += line + "\n";
    text.remove_prefix(std::min(end + 2, text.size()));
    out += "\n";
  }
  return out;
}

// Text in brackets must not be broken when a synopsis is wrapped.
std::vector<std::string> wrapped_synopsis(std::string way, std::size_t width) {
  bool within = false;
  for (char& c : way) {
    within = c == '[' || (within && c != ']');
    if (within && c == ' ') c = '\1';
  }
  std::vector<std::string> lines = wrapped(way, width);
  for (std::string& line : lines) std::replace(line.begin(), line.end(), '\1', ' ');
  return lines;
}

std::string usage(const Program& program, const Command& command, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& way : synopsis_of(command)) {
    const std::string start = fmt::format("{} {} ", text.empty() ? "Usage:" : "      ", full_name(program, words));
    const std::string indent(start.size(), ' ');
    if (way.empty()) text += fmt::format("Usage: {}\n", full_name(program, words));
    bool first = true;
    for (const std::string& line : wrapped_synopsis(way, kWidth - start.size())) {
      text += (first ? start : indent) + line + "\n";
      first = false;
    }
  }
  return text + "\n";
}

Option flag(const char* names, const char* help) {
  static bool nowhere = false;
  return {.names = names, .slot = &nowhere, .help = help};
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& words : split(text, '\n'))
    for (const std::string& word : split(words, ' ')) {
      if (word.empty()) continue;
      if (lines.empty() || lines.back().size() + 1 + word.size() > width) lines.push_back(word);
      else lines.back() += " " + word;
    }
  return lines;
}

std::string option_head(const Option& option) {
  std::string head;
  for (const std::string& name : names_of(option)) head += (head.empty() ? "" : ", ") + name;
  if (is_positional(option)) return value_name(option) + (is_list(option) ? "..." : "");
  if (!head.starts_with("-") || head.starts_with("--")) head = "    " + head;  // align the long names
  if (!is_flag(option))
    head += fmt::format(" {}{}", value_name(option), is_list(option) && !option.one_each ? "..." : "");
  return head;
}

std::string option_help(const Option& option) {
  std::string text = option.help;
  if (option.by_commas) text += "; separate several with commas";
  if (option.one_each) text += "; the option may be repeated";
  std::vector<std::string> more;
  if (!option.choices.empty()) more.push_back(alternatives(option.choices));
  if (option.range) more.push_back(fmt::format("{} to {}", option.range->first, option.range->second));
  if (!option.otherwise.empty()) more.push_back("default " + option.otherwise);
  if (option.required && !is_positional(option)) more.emplace_back("required");
  return more.empty() ? text : fmt::format("{} ({})", text, fmt::join(more, "; "));
}

std::vector<std::string> synopsis_of(const Command& command) {
  if (!command.synopsis.empty()) return command.synopsis;
  std::string text;
  for (const Option& option : command.options)
    if (option.required && !is_positional(option))
      text += fmt::format("{} {} ", names_of(option).front(), value_name(option));
  const bool optional = std::any_of(command.options.begin(), command.options.end(),
                                    [](const Option& o) { return !o.required && !is_positional(o); });
  if (optional) text += "[OPTION...] ";
  for (const Option& option : command.options)
    if (is_positional(option))
      text += fmt::format("{}{}{}{}{} ", option.required ? "" : "[", option.rest ? "-- " : "", value_name(option),
                          is_list(option) ? "..." : "", option.required ? "" : "]");
  if (!text.empty()) text.pop_back();
  return {text};
}

std::vector<OptionGroup> option_groups(const Program& program, const Command& command) {
  std::vector<OptionGroup> groups;
  const auto add = [&](const std::string& heading, const Option& option) {
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const OptionGroup& g) { return g.heading == heading; });
    (found == groups.end() ? groups.emplace_back(OptionGroup{heading, {}}) : *found).options.push_back(option);
  };
  for (const Option& option : command.options)
    if (is_positional(option) && option.group.empty()) add("Arguments", option);
  for (const Option& option : command.options)
    if (!is_positional(option) || !option.group.empty()) add(option.group.empty() ? "Options" : option.group, option);
  const bool is_top = &command == &program.top;
  const std::string common = is_top ? "Options" : "Options of every command";
  add(common, flag("-h,--help", "Print this help"));
  if (!is_top) {
    static Common nowhere;
    for (const Option& option : common_options(nowhere)) add(common, option);
  }
  add(common, flag("--version", "Print the version"));
  return groups;
}

std::string help_text(const Program& program, const Command& command, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& line : wrapped(command.summary + ".", kWidth)) text += line + "\n";
  text += "\n" + usage(program, command, words) + paragraphs(command.description);
  if (!command.commands.empty()) {
    text += "Commands:\n";
    for (const Command& inner : command.commands) text += row(inner.name, inner.summary);
    text += fmt::format("'{} COMMAND --help' describes each command.\n\n", full_name(program, words));
  }
  for (const OptionGroup& group : option_groups(program, command)) {
    text += group.heading + ":\n";
    for (const Option& option : group.options) text += row(option_head(option), option_help(option));
    text += "\n";
  }
  if (&command == &program.top) {
    text += "Exit codes:\n";
    for (const auto& [code, meaning] : program.exit_codes) text += row(std::to_string(code), meaning);
    text += "\n";
  }
  text += "Examples:\n";
  for (const std::string& example : command.examples) text += "  " + example + "\n";
  return text;
}

}  // namespace rose::cli
