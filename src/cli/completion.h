// Generates shell completions from the table of options. The scripts do not call rose.
#pragma once

#include <string>

#include "cli/options.h"

namespace rose::cli {

// `shell` is bash, zsh or fish. The result goes to bash-completion's folder, zsh's $fpath (as _rose) or fish's
// completions.
[[nodiscard]] std::string completion_script(const Program& program, std::string_view shell);

}  // namespace rose::cli
