// Programs that run code which is not their own: their functions say nothing of an application.
#pragma once

#include <string_view>

namespace rose::symbols {

// The language of the code that a program runs ("Java", "Python", "shell"), or a library that programs do it with; ""
// it runs its own. By the file's name, with or without a version: "/usr/bin/python3.11", "libpython3.11.so.1.0". A
// program of an application may be called node, too: Node.js lies in a folder "bin".
[[nodiscard]] std::string_view language_run_by(std::string_view file);

[[nodiscard]] inline bool interprets(std::string_view program) { return !language_run_by(program).empty(); }

}  // namespace rose::symbols
