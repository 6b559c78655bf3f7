// The one table of commands and options: plain data that each command file declares. The parser, --help, the man pages
// and the shells' completions are all made from it, so they cannot say different things.
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

// Options that every command has.
struct Common {
  bool verbose = false;
  bool quiet = false;
  bool json = false;
};

// Where the parser puts what was given. The type says what is accepted: a bool* is a flag without a value, a vector takes
// several values. Whoever declares the option keeps the place alive (its Command's `run` holds it).
using Slot = std::variant<bool*, int*, std::optional<int>*, std::optional<std::uint64_t>*, std::string*, std::optional<std::string>*,
                          std::vector<int>*, std::vector<std::string>*>;

// What a shell offers where a value is typed.
enum class Completes {
  nothing,    // free text: times, names that only the user knows
  file,
  folder,
  program,    // a command, and the words after it as that command has them
  pid,
  unit,       // systemd units
  container,  // of docker, podman, nerdctl
  interface,  // network interfaces
  node,       // nodes of the deployment that -c names, else of rose.toml
};

struct Option {
  std::string names;  // "-o,--output"; without a dash: an argument that is known by its place
  Slot slot;
  std::string value = {};  // what the value is called in help: "FILE"; by the slot's type when absent
  std::string help = {};
  std::string group = {};  // a heading in help; absent: "Options"
  bool required = false;
  bool rest = false;        // of a positional: from here on every word is its own, options too
  bool one_each = false;    // a list of which each occurrence of the option gives one: --noise A --noise B
  bool by_commas = false;   // a list whose values may be joined: --type scf,af
  std::string otherwise = {};  // the default, where the slot does not hold it: "5s"
  std::vector<std::string> choices = {};
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range = {};  // both ends belong to it
  Completes completes = Completes::nothing;
};

struct Command {
  std::string name;
  std::string summary;                // one line: the list of commands, the head of its own help
  std::string synopsis = {};          // lines of what follows "rose NAME"; absent: made from the options
  std::string description = {};       // further paragraphs of its help and man page, parted by empty lines
  std::vector<std::string> examples;  // whole command lines
  std::vector<Option> options = {};
  std::vector<Command> commands = {};  // inner ones: `rose dump show`
  // What main runs when this one is chosen; its value is the exit code. It owns what the slots point to.
  std::function<Result<int>(const Common&)> run = {};
};

struct Program {
  Command top;
  std::string version;
  std::string exit_codes;  // a paragraph
};

[[nodiscard]] bool is_flag(const Option& option);
[[nodiscard]] bool is_list(const Option& option);
[[nodiscard]] bool is_positional(const Option& option);
// "--output" of "-o,--output"; "-o" when there is no other; "file" of a positional.
[[nodiscard]] std::string main_name(const Option& option);
[[nodiscard]] std::vector<std::string> names_of(const Option& option);
// Its default: what the slot holds, else what `otherwise` says; empty when there is none. Only before parsing.
[[nodiscard]] std::string default_of(const Option& option);

// --verbose, --quiet and --json, which every command takes beside its own.
[[nodiscard]] std::vector<Option> common_options(Common& common);

}  // namespace rose::cli
