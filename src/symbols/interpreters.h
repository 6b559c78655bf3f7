// Recognises programs that interpret code. Their own functions do not belong to the application.
#pragma once

#include <string_view>

namespace rose::symbols {

// The language of the code that a program or library executes ("Java", "Python", "shell"); "" if it is no interpreter.
// The file name decides, with or without a version: "/usr/bin/python3.11", "libpython3.11.so.1.0". A program of the
// application may be called node, too, so the name "node" counts only in a folder "bin", where Node.js is installed.
[[nodiscard]] std::string_view language_run_by(std::string_view file);

[[nodiscard]] inline bool interprets(std::string_view program) { return !language_run_by(program).empty(); }

}  // namespace rose::symbols
