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

// The values of the options that every command has.
struct Common {
  bool verbose = false;
  bool quiet = false;
  bool json = false;
};

// Where the parser puts what was given. The type says what is accepted: a bool* is a flag without a value, a vector
// takes several values. Whoever declares the option keeps the place alive (its Command's `run` holds it).
using Slot = std::variant<bool*, int*, std::optional<int>*, std::optional<std::uint64_t>*, std::string*,
                          std::optional<std::string>*, std::vector<int>*, std::vector<std::string>*>;

// What a shell offers where a value is typed.
enum class Completes {
  nothing,  // free text: times, names that only the user knows
  file,
  folder,
  program,  // a command, and the words after it as that command has them
  pid,
  unit,       // systemd units
  container,  // of docker, podman, nerdctl
  interface,  // network interfaces
  node,       // nodes of the deployment that -c names, else of rose.toml
};

struct Option {
  std::string names;  // "-o,--output"; without a dash: an argument that is known by its place
  Slot slot;
  std::string value = {};  // what the value is called in help: "FILE"
  std::string help = {};
  std::string group = {};  // a heading in help; absent: "Options"
  bool required = false;
  bool rest = false;           // of a positional: from here on every word is its own, options too
  bool one_each = false;       // a list of which each occurrence of the option gives one: --noise A --noise B
  bool by_commas = false;      // a list whose values may be joined: --type scf,af
  std::string otherwise = {};  // the default: "5s"; absent: what the slot holds when note_defaults looks
  std::vector<std::string> choices = {};                              // all that is accepted
  std::vector<std::string> suggestions = {};                          // what shells offer; others are accepted too
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range = {};  // both ends belong to it
  Completes completes = Completes::nothing;
};

struct Command {
  std::string name;
  std::string summary;  // one line: the list of commands, the head of its own help
  std::vector<std::string> synopsis =
      {};                        // what follows "rose NAME", one line a way to call it; absent: made from the options
  std::string description = {};  // paragraphs, parted by empty lines
  std::vector<std::string> examples;  // whole command lines
  std::vector<Option> options = {};
  std::vector<Command> commands = {};  // inner ones: `rose dump show`
  // For the man page: variables that it reads, files that it reads or writes; name and meaning.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<std::pair<std::string, std::string>> files = {};
  // What main runs when this one is chosen; its value is the exit code. It owns what the slots point to.
  std::function<Result<int>(const Common&)> run = {};
};

struct Program {
  Command top;           // without options of its own
  std::string version;   // "0.1.0"
  std::string released;  // "2026-11-22"
  std::vector<std::pair<int, std::string>> exit_codes;
};

[[nodiscard]] bool is_flag(const Option& option);
[[nodiscard]] bool is_list(const Option& option);
[[nodiscard]] bool is_positional(const Option& option);
// "--output" of "-o,--output"; "-o" when there is no other; "file" of a positional.
[[nodiscard]] std::string main_name(const Option& option);
[[nodiscard]] std::vector<std::string> names_of(const Option& option);
// What the value is called in help: "FILE".
[[nodiscard]] std::string value_name(const Option& option);
// Once, before anything is parsed into the slots.
void note_defaults(Command& command);

// "rose dump show" of the words "dump show".
[[nodiscard]] std::string full_name(const Program& program, const std::vector<std::string>& words);
// What the words name; none: the program itself. The error knows what is near.
[[nodiscard]] Result<const Command*> find_command(const Program& program, const std::vector<std::string>& words);
[[nodiscard]] const Command* inner_named(const Command& command, std::string_view name);
[[nodiscard]] std::vector<std::string> command_names(const Command& command);
// Calls `visit` with every command and the words that name it, outer ones first; the program itself comes first,
// without words.
void for_each_command(const Program& program,
                      const std::function<void(const Command&, const std::vector<std::string>&)>& visit);

// --verbose, --quiet and --json, which every command takes beside its own.
[[nodiscard]] std::vector<Option> common_options(Common& common);

}  // namespace rose::cli
