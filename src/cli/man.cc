#include "cli/man.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/help_text.h"

namespace rose::cli {
namespace {

// Escapes text for roff, in which '-', '\' and a '.' or quote at the start of a line have a special meaning.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '~': out += "\\(ti"; break;
      case '^': out += "\\(ha"; break;
      case '`': out += "\\(ga"; break;
      case '\'': out += "\\(aq"; break;
      default: out += c;
    }
  }
  if (out.starts_with('.')) out.insert(0, "\\&");
  return out;
}

// A heading as the quoted argument of a roff request. A '"' in it is escaped, because it would end the argument.
std::string roff_argument(std::string_view text) {
  std::string inside = roff(text);
  for (std::size_t at = 0; (at = inside.find('"', at)) != std::string::npos; at += 4) inside.replace(at, 1, "\\(dq");
  return "\"" + inside + "\"";
}

std::string page_name(const Program& program, const std::vector<std::string>& words) {
  std::string name = full_name(program, words);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

// Wraps the text, so that lines of the page's source are short even with escapes. roff fills the lines again.
std::string filled(std::string_view text) {
  std::string out;
  for (const std::string& line : wrapped(text, 66)) out += roff(line) + "\n";
  return out;
}

std::string roff_paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    out += ".PP\n" + filled(text.substr(0, end));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

// Words in capitals are placeholders: italic. Other words are literal: bold.
std::string synopsis_line(std::string_view line) {
  std::string out;
  std::string word;
  const auto end_word = [&] {
    if (word.empty()) return;
    const bool typed = word.starts_with('-') ||
                       std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::islower(c) != 0; });
    out += fmt::format("\\f{}{}\\fR", typed ? 'B' : 'I', roff(word));
    word.clear();
  };
  for (const char c : line) {
    if (std::string_view(" []()|=:.").find(c) == std::string_view::npos) {
      word += c;
      continue;
    }
    if (c == '.' && !word.empty() && std::islower(static_cast<unsigned char>(word.back())) != 0) {  // "rose.toml"
      word += c;
      continue;
    }
    end_word();
    out += c;
  }
  end_word();
  return out;
}

std::string option_tag(const Option& option) {
  std::string tag;
  if (is_positional(option)) return fmt::format("\\fI{}\\fR{}", roff(value_name(option)), is_list(option) ? "..." : "");
  for (const std::string& name : names_of(option))
    tag += fmt::format("{}\\fB{}\\fR", tag.empty() ? "" : ", ", roff(name));
  if (!is_flag(option))
    tag += fmt::format(" \\fI{}\\fR{}", roff(value_name(option)), is_list(option) && !option.one_each ? "..." : "");
  return tag;
}

std::string roff_pairs(const char* heading, const std::vector<std::pair<std::string, std::string>>& rows) {
  if (rows.empty()) return "";
  std::string text = fmt::format(".SH {}\n", heading);
  for (const auto& [name, meaning] : rows) text += fmt::format(".TP\n\\fB{}\\fR\n{}", roff(name), filled(meaning));
  return text;
}

std::string see_also(const Program& program, const Command& command, const std::vector<std::string>& words) {
  std::vector<std::string> pages;
  const auto add = [&](const std::vector<std::string>& other) {
    if (other != words) pages.push_back(fmt::format(".BR {} (1)", roff(page_name(program, other))));
  };
  if (!words.empty()) add({});
  if (words.size() > 1) add({words.front()});
  for (const Command& inner : command.commands) {
    std::vector<std::string> name = words;
    name.push_back(inner.name);
    add(name);
  }
  if (!words.empty() && command.commands.empty() && words.size() == 1)
    for (const Command& other : program.top.commands) add({other.name});
  std::string text = ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < pages.size(); ++i) text += pages[i] + (i + 1 < pages.size() ? " ,\n" : "\n");
  return text;
}

}  // namespace

std::string man_page(const Program& program, const Command& command, const std::vector<std::string>& words) {
  const std::string name = page_name(program, words);
  std::string summary = command.summary;
  summary.front() = lower_case(summary.front());
  std::string text =
      fmt::format(".\\\" Made by 'rose help --man' from the table of options.\n.TH {} 1 {} {} {}\n",
                  roff_argument(upper_case(name)), "\"" + program.released + "\"",
                  roff_argument(program.top.name + " " + program.version), roff_argument(program.top.name + " manual"));
  text += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", roff(name), roff(summary));
  bool first = true;
  for (const std::string& way : synopsis_of(command)) {
    text += fmt::format("{}\\fB{}\\fR{}{}\n", first ? "" : ".br\n", roff(full_name(program, words)),
                        way.empty() ? "" : " ", synopsis_line(way));
    first = false;
  }
  text += ".SH DESCRIPTION\n" + filled(command.summary + ".") + roff_paragraphs(command.description);
  if (!command.commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const Command& inner : command.commands)
      text += fmt::format(".TP\n\\fB{}\\fR\n{}", roff(inner.name), filled(inner.summary));
  }
  text += ".SH OPTIONS\n";
  for (const OptionGroup& group : option_groups(program, command)) {
    if (group.heading != "Options") text += fmt::format(".SS {}\n", roff_argument(group.heading));
    for (const Option& option : group.options)
      text += fmt::format(".TP\n{}\n{}", option_tag(option), filled(option_help(option)));
  }
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : program.exit_codes)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}", code, filled(meaning));
  text += roff_pairs("ENVIRONMENT", command.environment) + roff_pairs("FILES", command.files);
  text += ".SH EXAMPLES\n";
  for (const std::string& example : command.examples)
    text +=
        (&example == &command.examples.front() ? "" : ".PP\n") + fmt::format(".nf\n.RS\n{}\n.RE\n.fi\n", roff(example));
  return text + see_also(program, command, words);
}

Result<std::vector<std::string>> write_man_pages(const Program& program, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(ErrorKind::usage,
                fmt::format("--man: cannot create the folder {}: {}", folder.string(), error.message()));
  std::vector<std::string> names;
  std::optional<Error> failed;
  for_each_command(program, [&](const Command& command, const std::vector<std::string>& words) {
    if (failed) return;
    names.push_back(page_name(program, words) + ".1");
    if (Result<void> written = write_file(folder / names.back(), man_page(program, command, words), 0644); !written)
      failed = std::move(written).error();
  });
  if (failed) return Unexpected(std::move(*failed));
  return names;
}

}  // namespace rose::cli
