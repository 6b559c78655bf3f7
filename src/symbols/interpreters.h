// Recognises programs that interpret code. Their own functions are not functions of the application.
#pragma once

#include <string_view>

namespace rose::symbols {

// The language of the code that a program or library executes ("Java", "Python", "shell"), or "" if it is not an
// interpreter. The file name decides, with or without a version: "/usr/bin/python3.11", "libpython3.11.so.1.0". An
// application's program may be called node, too, so that name counts only in a folder "bin", where Node.js is
// installed.
[[nodiscard]] std::string_view language_run_by(std::string_view file);

[[nodiscard]] inline bool interprets(std::string_view program) { return !language_run_by(program).empty(); }

}  // namespace rose::symbols
