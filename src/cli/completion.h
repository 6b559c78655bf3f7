// Completions for shells, made from the table of options. The scripts stand alone: they ask rose nothing.
#pragma once

#include <string>

#include "cli/options.h"

namespace rose::cli {

// `shell` is bash, zsh or fish. For bash-completion's folder, zsh's $fpath (as _rose), fish's completions.
[[nodiscard]] std::string completion_script(const Program& program, std::string_view shell);

}  // namespace rose::cli
