// Parses the command line by the table of options. Only parse.cc depends on CLI11.
#pragma once

#include <string>

#include "cli/options.h"

namespace rose::cli {

struct Parsed {
  const Command* command = nullptr;  // the innermost command; nullptr: only `text` was requested
  std::string text;                  // text of --help or --version
};

// Stores values in the slots of the command and in `common`. An error names the mistake; its hint suggests a
// correction.
[[nodiscard]] Result<Parsed> parse(const Program& program, Common& common, int argc, const char* const* argv);

}  // namespace rose::cli
