// What --help prints, made from the table of options.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace rose::cli {

// Lines of at most 80 characters, examples aside: those are to be copied. `words` name the command: none, the program
// itself.
[[nodiscard]] std::string help_text(const Program& program, const Command& command,
                                    const std::vector<std::string>& words);

// Its ways to be called, without "rose NAME": "[OPTION...] SCHEDULE".
[[nodiscard]] std::vector<std::string> synopsis_of(const Command& command);

// Its options under their headings, in the table's order; arguments come first, what every command has last.
struct OptionGroup {
  std::string heading;
  std::vector<Option> options;
};
[[nodiscard]] std::vector<OptionGroup> option_groups(const Program& program, const Command& command);

// "-o, --output FILE"; of a list "--pid PID...".
[[nodiscard]] std::string option_head(const Option& option);
// Its help with what it accepts and its default: "How to print it: text, jsonl or html (default text)".
[[nodiscard]] std::string option_help(const Option& option);

// Broken between words into lines of at most `width`; a longer word has a line of its own.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace rose::cli
