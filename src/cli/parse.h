// The command line, read against the table of options. The only file that knows CLI11 is parse.cc.
#pragma once

#include <string>

#include "cli/options.h"

namespace rose::cli {

struct Parsed {
  const Command* command = nullptr;  // the innermost that was named; nullptr: `text` is all that was asked for
  std::string text;                  // of --help and --version
};

// Fills the slots of the chosen command, and `common`. An error names what was wrong; its hint, what is nearest.
[[nodiscard]] Result<Parsed> parse(const Program& program, Common& common, int argc, const char* const* argv);

}  // namespace rose::cli
