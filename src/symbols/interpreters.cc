#include "symbols/interpreters.h"

#include <set>

namespace rose::symbols {

bool interprets(std::string_view program) {
  static const std::set<std::string_view> known = {"ash",  "awk", "bash", "beam.smp", "busybox", "csh",    "dash",   "dotnet", "erl", "escript", "fish", "gawk",   "guile", "java", "ksh", "lua",
                                                   "luajit", "make", "mawk", "mono", "node", "nodejs", "perl", "php", "pwsh", "pypy", "python", "ruby", "Rscript", "sh", "tclsh", "zsh"};
  const std::string_view name = program.substr(program.rfind('/') + 1);
  if (name == "node") return program == name || program.ends_with("bin/node");
  const std::string_view plain = name.substr(0, name.find_last_not_of("0123456789.-") + 1);  // python3.11
  return known.contains(name) || known.contains(plain);
}

}  // namespace rose::symbols
