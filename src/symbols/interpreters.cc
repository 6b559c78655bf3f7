#include "symbols/interpreters.h"

#include <map>

namespace rose::symbols {
namespace {

constexpr std::string_view kVersion = "0123456789.-";

std::string_view without_version(std::string_view name) { return name.substr(0, name.find_last_not_of(kVersion) + 1); }

}  // namespace

std::string_view language_run_by(std::string_view file) {
  static const std::map<std::string_view, std::string_view> programs = {
      {"ash", "shell"},       {"awk", "awk"},       {"bash", "shell"},      {"beam.smp", "Erlang"},
      {"bun", "JavaScript"},  {"busybox", "shell"}, {"csh", "shell"},       {"dash", "shell"},
      {"deno", "JavaScript"}, {"dotnet", ".NET"},   {"erl", "Erlang"},      {"escript", "Erlang"},
      {"fish", "shell"},      {"gawk", "awk"},      {"guile", "Scheme"},    {"java", "Java"},
      {"ksh", "shell"},       {"lua", "Lua"},       {"luajit", "Lua"},      {"make", "make"},
      {"mawk", "awk"},        {"mono", ".NET"},     {"node", "JavaScript"}, {"nodejs", "JavaScript"},
      {"perl", "Perl"},       {"php", "PHP"},       {"pwsh", "PowerShell"}, {"pypy", "Python"},
      {"python", "Python"},   {"ruby", "Ruby"},     {"Rscript", "R"},       {"sh", "shell"},
      {"tclsh", "Tcl"},       {"zsh", "shell"}};
  static const std::map<std::string_view, std::string_view> libraries = {
      {"libcoreclr", ".NET"}, {"libjvm", "Java"}, {"liblua", "Lua"},       {"libnode", "JavaScript"},
      {"libperl", "Perl"},    {"libphp", "PHP"},  {"libpython", "Python"}, {"libruby", "Ruby"}};
  const std::string_view name = file.substr(file.rfind('/') + 1);
  if (const std::size_t so = name.find(".so"); so != std::string_view::npos && name.starts_with("lib")) {
    const auto library = libraries.find(without_version(name.substr(0, so)));
    return library != libraries.end() ? library->second : std::string_view();
  }
  if (name == "node" && file != name && !file.ends_with("bin/node")) return {};
  auto program = programs.find(name);
  if (program == programs.end()) program = programs.find(without_version(name));
  return program != programs.end() ? program->second : std::string_view();
}

}  // namespace rose::symbols
