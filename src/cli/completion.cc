#include "cli/completion.h"

#include <fmt/format.h>

#include "base/text.h"

namespace rose::cli {
namespace {

using Names = std::vector<std::string>;

// An awk program that prints the names of the nodes in a rose.toml.
constexpr std::string_view kNodesOf =
    R"sh('/^[ \t]*\[/ { node = /^[ \t]*\[\[[ \t]*node[ \t]*\]\]/ } node && /^[ \t]*name[ \t]*=/ { split($0, part, /["\047]/); print part[2] }')sh";

std::vector<Option> all_options(const Command& command, bool is_top) {
  static Common nowhere;
  static bool no = false;
  std::vector<Option> options = command.options;
  if (!is_top)
    for (const Option& option : common_options(nowhere)) options.push_back(option);
  options.push_back({.names = "-h,--help", .slot = &no, .help = "Print its help"});
  options.push_back({.names = "--version", .slot = &no, .help = "Print the version"});
  return options;
}

Names positional_kinds(const Command& command, const std::function<std::string(const Option&)>& kind) {
  Names kinds;
  for (const Option& option : command.options)
    if (is_positional(option)) kinds.push_back(kind(option));
  return kinds;
}

// bash

// The kind of completion as an argument for _rose_offer.
std::string bash_kind(const Option& option) {
  if (!option.suggestions.empty()) return fmt::format("words {}", fmt::join(option.suggestions, " "));
  if (!option.choices.empty())
    return fmt::format("{} {}", option.by_commas ? "list" : "words", fmt::join(option.choices, " "));
  switch (option.completes) {
    case Completes::nothing: return "nothing";
    case Completes::file: return "file";
    case Completes::folder: return "folder";
    case Completes::program: return "program";
    case Completes::pid: return "pid";
    case Completes::unit: return "unit";
    case Completes::container: return "container";
    case Completes::interface: return "interface";
    case Completes::node: return "node";
  }
  return "nothing";
}

constexpr std::string_view kBashStart = R"sh(# bash completion for rose, made by 'rose help --completion bash'.

_rose_nodes() {
  local file=rose.toml i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -c | --config)
        file=${COMP_WORDS[i + 1]}
        [[ $file == '=' ]] && file=${COMP_WORDS[i + 2]}
        ;;
    esac
  done
  [[ -r $file ]] && awk @NODES@ "$file"
}

# _rose_offer KIND [WORD...]: what may stand at the cursor.
_rose_offer() {
  local kind=$1
  shift
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur") ;;
    list)
      local before=
      [[ $cur == *,* ]] && before=${cur%,*},
      mapfile -t COMPREPLY < <(compgen -P "$before" -W "$*" -- "${cur##*,}")
      compopt -o nospace 2>/dev/null
      ;;
    file)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      compopt -o filenames 2>/dev/null
      ;;
    folder)
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      compopt -o filenames 2>/dev/null
      ;;
    program) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
    pid) mapfile -t COMPREPLY < <(cd /proc && compgen -d -- "$cur" | grep '^[0-9]') ;;
    unit) mapfile -t COMPREPLY < <(compgen -W "$(systemctl list-units --all --plain --no-legend --no-pager 2>/dev/null | awk '{ print $1 }')" -- "$cur") ;;
    container)
      local tool
      for tool in docker podman nerdctl; do
        command -v $tool >/dev/null && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$($tool ps --format '{{.Names}}' 2>/dev/null)" -- "$cur")
      done
      ;;
    interface) mapfile -t COMPREPLY < <(cd /sys/class/net && compgen -f -- "$cur") ;;
    node) mapfile -t COMPREPLY < <(compgen -W "$(_rose_nodes)" -- "$cur") ;;
  esac
}

# The words after --: another program's.
_rose_program() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    _rose_offer program
  else
    _rose_offer file
  fi
}
)sh";

constexpr std::string_view kBashEnd = R"sh(
_rose() {
  local cur=${COMP_WORDS[COMP_CWORD]} command='' option='' place=0 many=0 kind='' options='' commands='' places=() i word
  COMPREPLY=()
  [[ $cur == '=' ]] && cur=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      '=') continue ;;
      --)
        _rose_program $((i + 1))
        return
        ;;
      -?*)
        # A single option takes what follows, a dash or not: --since -10s.
        if [[ -n $option && $many == 0 ]]; then
          option=
        else
          option=$word
          _rose_value "$command$option"
          [[ -n $kind ]] || option=
        fi
        continue
        ;;
    esac
    if [[ -n $option ]]; then
      ((many)) || option=
    elif _rose_is_command "$command$word"; then
      command+="$word "
      place=0
    else
      place=$((place + 1))
    fi
  done
  _rose_command "$command"
  if [[ -n $option && ($many == 0 || $cur != -*) ]]; then
    _rose_value "$command$option"
    # shellcheck disable=SC2086
    _rose_offer $kind
  elif [[ $cur == -* ]]; then
    _rose_offer words "$options"
  elif [[ -n $commands && $place == 0 ]]; then
    _rose_offer words "$commands"
  elif ((${#places[@]})); then
    ((place < ${#places[@]})) || place=$((${#places[@]} - 1))
    # shellcheck disable=SC2086
    _rose_offer ${places[place]}
  fi
}

complete -F _rose rose
)sh";

std::string bash_script(const Program& program) {
  std::string values;
  std::string known;
  std::string commands;
  for_each_command(program, [&](const Command& command, const Names& words) {
    const std::string path = words.empty() ? "" : fmt::format("{} ", fmt::join(words, " "));
    if (!words.empty()) known += fmt::format("{}'{}'", known.empty() ? "" : " | ", fmt::join(words, " "));
    std::string options;
    for (const Option& option : all_options(command, words.empty())) {
      if (is_positional(option)) continue;
      std::string pattern;
      for (const std::string& name : names_of(option)) {
        pattern += fmt::format("{}'{}{}'", pattern.empty() ? "" : " | ", path, name);
        if (name.starts_with("--")) options += (options.empty() ? "" : " ") + name;
      }
      if (is_flag(option)) continue;
      values += fmt::format("    {}) kind='{}' many={} ;;\n", pattern, bash_kind(option),
                            is_list(option) && !option.one_each ? 1 : 0);
    }
    std::string places;
    for (const std::string& kind : positional_kinds(command, bash_kind))
      places += fmt::format("{}'{}'", places.empty() ? "" : " ", kind);
    commands += fmt::format("    '{}')\n      options='{}'\n      commands='{}'\n      places=({})\n      ;;\n", path,
                            options, fmt::join(command_names(command), " "), places);
  });
  return replaced(std::string(kBashStart), "@NODES@", kNodesOf) +
         fmt::format(
             "\n# What the value of an option is, if it has one; the words before it name the command.\n_rose_value() "
             "{{\n  kind='' many=0\n"
             "  case $1 in\n{}  esac\n}}\n\n_rose_is_command() {{\n  case $1 in\n    {}) return 0 ;;\n  esac\n  return "
             "1\n}}\n"
             "\n_rose_command() {{\n  case $1 in\n{}  esac\n}}\n",
             values, known, commands) +
         std::string(kBashEnd);
}

// zsh

// Escapes text that is inside [] or between colons in a specification.
std::string zsh_text(std::string text) {
  text = replaced(std::move(text), "\\", "\\\\");
  for (const char* special : {"[", "]", ":"}) text = replaced(std::move(text), special, std::string("\\") + special);
  return text;
}

std::string zsh_action(const Option& option) {
  if (!option.suggestions.empty()) return fmt::format("({})", fmt::join(option.suggestions, " "));
  if (!option.choices.empty())
    return option.by_commas ? fmt::format("_sequence compadd - {}", fmt::join(option.choices, " "))
                            : fmt::format("({})", fmt::join(option.choices, " "));
  switch (option.completes) {
    case Completes::nothing: return " ";
    case Completes::file: return "_files";
    case Completes::folder: return "_files -/";
    case Completes::program: return "_normal";
    case Completes::pid: return "_pids";
    case Completes::unit: return "_rose_units";
    case Completes::container: return "_rose_containers";
    case Completes::interface: return "_net_interfaces";
    case Completes::node: return "_rose_nodes";
  }
  return " ";
}

// True for an option that takes several values per occurrence. _arguments has no form for values that end at the next
// option, so it treats further values as arguments; the function _rose_more_... determines the option that they belong
// to.
bool takes_more(const Option& option) {
  return !is_positional(option) && is_list(option) && !option.one_each && !option.by_commas;
}

std::string zsh_more(const Command& command, const std::string& function) {
  std::string cases;
  std::string otherwise;
  bool before_program = false;
  for (const Option& option : command.options) {
    if (takes_more(option))
      cases += fmt::format("      {})\n        {}\n        return\n        ;;\n", fmt::join(names_of(option), " | "),
                           zsh_action(option));
    before_program = before_program || (is_positional(option) && option.completes == Completes::program);
    if (is_positional(option) && option.completes != Completes::program)
      otherwise = fmt::format("  {}\n", zsh_action(option));
  }
  if (cases.empty()) return "";
  return fmt::format(
      "\n_rose_more{}() {{\n  local i\n{}  for ((i = CURRENT - 1; i > 1; i--)); do\n    case $words[i] in\n{}      -*) "
      "break ;;\n    esac\n  done\n{}}}\n",
      function.substr(5),
      before_program ? "  i=${words[(i)--]}\n  if ((i < CURRENT)); then\n    words=(\"${(@)words[i + 1,-1]}\")\n    "
                       "((CURRENT -= i))\n    _normal\n    return\n  fi\n"
                     : "",
      cases, otherwise);
}

// The specification of an option for _arguments.
std::string zsh_spec(const Option& option) {
  const std::string help = zsh_text(option.help);
  if (is_positional(option)) {
    const char* many = option.completes == Completes::program ? "*::" : is_list(option) ? "*:" : ":";
    return shell_quoted(fmt::format("{}{}:{}", many, zsh_text(value_name(option)), zsh_action(option)));
  }
  const bool repeated = is_list(option);
  const Names names = names_of(option);
  std::string value;
  if (!is_flag(option)) value = fmt::format(":{}:{}", zsh_text(value_name(option)), zsh_action(option));
  const std::string tail = fmt::format("[{}]{}", help, value);
  const std::string equals = is_flag(option) ? "" : "=";
  if (names.size() == 1) return shell_quoted(fmt::format("{}{}{}{}", repeated ? "*" : "", names.front(), equals, tail));
  const std::string excludes = option.names == "-h,--help" ? "(- *)"
                               : repeated                  ? "*"
                                                           : fmt::format("({})", fmt::join(names, " "));
  std::string variants;
  for (const std::string& name : names)
    variants += fmt::format("{}{}{}", variants.empty() ? "" : ",", name,
                            is_flag(option)          ? ""
                            : name.starts_with("--") ? "="
                                                     : "+");
  return fmt::format("{}{{{}}}{}", shell_quoted(excludes), variants, shell_quoted(tail));
}

constexpr std::string_view kZshStart = R"sh(#compdef rose
# zsh completion for rose, made by 'rose help --completion zsh'.

_rose_nodes() {
  local file=${opt_args[-c]:-${opt_args[--config]:-rose.toml}}
  local -a nodes
  [[ -r $file ]] && nodes=(${(f)"$(awk @NODES@ $file)"})
  compadd -a nodes
}

_rose_units() {
  local -a units
  units=(${(f)"$(systemctl list-units --all --plain --no-legend --no-pager 2>/dev/null | awk '{ print $1 }')"})
  compadd -a units
}

_rose_containers() {
  local -a names
  local tool
  for tool in docker podman nerdctl; do
    (( $+commands[$tool] )) && names+=(${(f)"$($tool ps --format '{{.Names}}' 2>/dev/null)"})
  done
  compadd -a names
}
)sh";

std::string zsh_script(const Program& program) {
  std::string text = replaced(std::string(kZshStart), "@NODES@", kNodesOf);
  for_each_command(program, [&](const Command& command, const Names& words) {
    std::string function = "_rose";
    for (const std::string& word : words) function += "_command_" + word;
    const std::string more = zsh_more(command, function);
    text += more + fmt::format("\n{}() {{\n", words.empty() ? "_rose_command" : function);
    const bool has_inner = !command.commands.empty();
    if (has_inner) text += "  local curcontext=$curcontext state line\n  typeset -A opt_args\n";
    text += has_inner ? "  _arguments -C -S" : "  typeset -A opt_args\n  _arguments -S";
    for (const Option& option : all_options(command, words.empty()))
      if (more.empty() || !is_positional(option)) text += " \\\n    " + zsh_spec(option);
    if (!more.empty()) text += fmt::format(" \\\n    '*: :_rose_more{}'", function.substr(5));
    if (!has_inner) {
      text += "\n}\n";
      return;
    }
    text +=
        " \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n  case $state in\n    command)\n      local "
        "-a commands=(\n";
    for (const Command& inner : command.commands)
      text += "        " + shell_quoted(inner.name + ":" + replaced(inner.summary, ":", "\\:")) + "\n";
    text += "      )\n      _describe command commands\n      ;;\n    argument)\n      case $line[1] in\n";
    for (const Command& inner : command.commands)
      text += fmt::format("        {}) {}_command_{} ;;\n", inner.name, words.empty() ? "_rose" : function, inner.name);
    text += "      esac\n      ;;\n  esac\n}\n";
  });
  return text + "\n_rose_command \"$@\"\n";
}

// fish

std::string fish_quoted(std::string_view text) {
  return "'" + replaced(replaced(std::string(text), "\\", "\\\\"), "'", "\\'") + "'";
}

// What follows -l NAME: whether the option takes a value and what is offered for it.
std::string fish_value(const Option& option) {
  if (is_flag(option)) return "";
  if (!option.suggestions.empty())
    return " -x -a " + fish_quoted(fmt::format("{}", fmt::join(option.suggestions, " ")));
  if (!option.choices.empty())
    return option.by_commas ? " -x -a " + fish_quoted(fmt::format("(__fish_complete_list , 'printf \"%s\\n\" {}')",
                                                                  fmt::join(option.choices, " ")))
                            : " -x -a " + fish_quoted(fmt::format("{}", fmt::join(option.choices, " ")));
  switch (option.completes) {
    case Completes::nothing: return " -x";
    case Completes::file: return " -r -F";
    case Completes::folder: return " -x -a '(__fish_complete_directories)'";
    case Completes::program: return " -x -a '(__fish_complete_command)'";
    case Completes::pid: return " -x -a '(__fish_complete_pids)'";
    case Completes::unit: return " -x -a '(__rose_units)'";
    case Completes::container: return " -x -a '(__rose_containers)'";
    case Completes::interface: return " -x -a '(__fish_print_interfaces)'";
    case Completes::node: return " -x -a '(__rose_nodes)'";
  }
  return "";
}

// Like fish_value(), for a positional argument.
std::string fish_argument(const Option& option) { return replaced(replaced(fish_value(option), " -x", ""), " -r", ""); }

constexpr std::string_view kFishStart = R"sh(# fish completion for rose, made by 'rose help --completion fish'.

# The command that the line names so far: "dump show".
function __rose_command
    set -l words (commandline -opc)
    set -l command
    for word in $words[2..]
        if contains -- "$command$word" @COMMANDS@
            set command "$command$word "
        end
    end
    string trim -- "$command"
end

function __rose_at
    test (__rose_command) = "$argv"; and not contains -- -- (commandline -opc)
end

function __rose_nodes
    set -l words (commandline -opc)
    set -l file rose.toml
    for name in -c --config
        if set -l at (contains -i -- $name $words)
            set file $words[(math $at + 1)]
        end
    end
    test -r $file; and awk @NODES@ $file
end

function __rose_units
    systemctl list-units --all --plain --no-legend --no-pager 2>/dev/null | awk '{ print $1 }'
end

function __rose_containers
    for tool in docker podman nerdctl
        command -q $tool; and $tool ps --format '{{.Names}}' 2>/dev/null
    end
end

# Is the last option on the line one of these? Then what follows may be one more of its values.
function __rose_after
    set -l words (commandline -opc)
    set -l options (string match -- '-*' $words)
    contains -- "$options[-1]" $argv
end

# The words after --: another program's.
function __rose_program
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words); or return
    complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..]) (commandline -ct))
end

complete -c rose -f
complete -c rose -n 'contains -- -- (commandline -opc)' -a '(__rose_program)'
)sh";

std::string fish_script(const Program& program) {
  std::string known;
  std::string rules;
  for_each_command(program, [&](const Command& command, const Names& words) {
    if (!words.empty()) known += fmt::format("{}'{}'", known.empty() ? "" : " ", fmt::join(words, " "));
    const std::string path = fmt::format("{}", fmt::join(words, " "));
    const std::string here =
        fmt::format("complete -c rose -n {}", fish_quoted(path.empty() ? "__rose_at ''" : "__rose_at " + path));
    rules += "\n";
    for (const Command& inner : command.commands)
      rules += fmt::format("{} -a {} -d {}\n", here, inner.name, fish_quoted(inner.summary));
    for (const Option& option : all_options(command, words.empty())) {
      if (is_positional(option)) {
        if (option.completes != Completes::program) rules += here + fish_argument(option) + "\n";
        continue;
      }
      std::string names;
      for (const std::string& name : names_of(option))
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      rules += fmt::format("{}{}{} -d {}\n", here, names, fish_value(option), fish_quoted(option.help));
      if (takes_more(option) && (!option.choices.empty() || option.completes != Completes::nothing))
        rules += fmt::format(
            "complete -c rose -n {}{}\n",
            fish_quoted(fmt::format("__rose_at {}; and __rose_after {}", path, fmt::join(names_of(option), " "))),
            fish_argument(option));
    }
  });
  return replaced(replaced(std::string(kFishStart), "@COMMANDS@", known), "@NODES@", kNodesOf) + rules;
}

}  // namespace

std::string completion_script(const Program& program, std::string_view shell) {
  if (shell == "bash") return bash_script(program);
  return shell == "zsh" ? zsh_script(program) : fish_script(program);
}

}  // namespace rose::cli
