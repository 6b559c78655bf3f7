// The table of commands and options: plain data that each command file declares. The parser, --help, the man pages and
// the shell completions are generated from it, so they cannot contradict each other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace rose::cli {

// Values of the options that every command has.
struct Common {
  bool verbose = false;
  bool quiet = false;
  bool json = false;
};

// Where the parser stores a value. The type determines what is accepted: bool* is a flag without a value, a vector
// takes several values. The command's `run` owns the variables.
using Slot = std::variant<bool*, int*, std::optional<int>*, std::optional<std::uint64_t>*, std::string*,
                          std::optional<std::string>*, std::vector<int>*, std::vector<std::string>*>;

// What a shell offers as completion of a value.
enum class Completes {
  nothing,  // times and names that only the user knows
  file,
  folder,
  program,  // a command with its arguments
  pid,
  unit,       // systemd units
  container,  // from docker, podman and nerdctl
  interface,  // network interfaces
  node,       // nodes of the deployment in -c, else in rose.toml
};

struct Option {
  std::string names;  // "-o,--output"; without a dash: a positional argument
  Slot slot;
  std::string value = {};  // the value's name in help: "FILE"
  std::string help = {};
  std::string group = {};  // heading in help; default: "Options"
  bool required = false;
  bool rest = false;                          // for a positional: it takes all further words, including options
  bool one_each = false;                      // a list with one value per occurrence: --noise A --noise B
  bool by_commas = false;                     // a list that may be written with commas: --type scf,af
  std::string otherwise = {};                 // the default in help: "5s"; if empty, the initial value of the slot
  std::vector<std::string> choices = {};      // all accepted values
  std::vector<std::string> suggestions = {};  // offered by shells; others are accepted too
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range = {};  // inclusive
  Completes completes = Completes::nothing;
};

struct Command {
  std::string name;
  std::string summary;  // one line, for the list of commands and the top of its help
  std::vector<std::string> synopsis =
      {};                        // what follows "rose NAME", one form per line; if empty, generated from the options
  std::string description = {};  // paragraphs separated by empty lines
  std::vector<std::string> examples;  // complete command lines
  std::vector<Option> options = {};
  std::vector<Command> commands = {};  // subcommands: `rose dump show`
  // For the man page: environment variables that the command reads and files that it reads or writes, each with its
  // meaning.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<std::pair<std::string, std::string>> files = {};
  // The function that main calls; it returns the exit code and owns the variables that the slots refer to.
  std::function<Result<int>(const Common&)> run = {};
};

struct Program {
  Command top;           // the program itself, which has no options
  std::string version;   // "0.1.0"
  std::string released;  // "2026-11-22"
  std::vector<std::pair<int, std::string>> exit_codes;
};

[[nodiscard]] bool is_flag(const Option& option);
[[nodiscard]] bool is_list(const Option& option);
[[nodiscard]] bool is_positional(const Option& option);
// "--output" for "-o,--output"; "-o" if there is no long name; "file" for a positional.
[[nodiscard]] std::string main_name(const Option& option);
[[nodiscard]] std::vector<std::string> names_of(const Option& option);
// The value's name in help: "FILE".
[[nodiscard]] std::string value_name(const Option& option);
// Uses the initial values of the slots as the defaults in help. Call it once, before the command line is parsed.
void note_defaults(Command& command);

// "rose dump show" for the words "dump show".
[[nodiscard]] std::string full_name(const Program& program, const std::vector<std::string>& words);
// The command with these words; the program itself if there are none. The error suggests similar names.
[[nodiscard]] Result<const Command*> find_command(const Program& program, const std::vector<std::string>& words);
[[nodiscard]] const Command* inner_named(const Command& command, std::string_view name);
[[nodiscard]] std::vector<std::string> command_names(const Command& command);
// Calls `visit` for every command with the words that name it, parents first. The program itself comes first, without
// words.
void for_each_command(const Program& program,
                      const std::function<void(const Command&, const std::vector<std::string>&)>& visit);

// --verbose, --quiet and --json, which every command has.
[[nodiscard]] std::vector<Option> common_options(Common& common);

}  // namespace rose::cli
