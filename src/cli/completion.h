// Generates shell completions from the table of options. The scripts do not call rose.
#pragma once

#include <string>

#include "cli/options.h"

namespace rose::cli {

// `shell` is bash, zsh or fish. The result belongs in bash-completion's folder, in a file _rose in zsh's $fpath, or in
// fish's folder of completions.
[[nodiscard]] std::string completion_script(const Program& program, std::string_view shell);

}  // namespace rose::cli
