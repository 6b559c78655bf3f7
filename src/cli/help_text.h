// The text of --help, generated from the table of options.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace rose::cli {

// Lines have at most 80 characters, except examples, which must stay copyable. `words` name the command; empty: the
// program.
[[nodiscard]] std::string help_text(const Program& program, const Command& command,
                                    const std::vector<std::string>& words);

// The forms in which the command can be called, without "rose NAME": "[OPTION...] SCHEDULE".
[[nodiscard]] std::vector<std::string> synopsis_of(const Command& command);

// The command's options by heading, in the order of the table: arguments first, common options last.
struct OptionGroup {
  std::string heading;
  std::vector<Option> options;
};
[[nodiscard]] std::vector<OptionGroup> option_groups(const Program& program, const Command& command);

// How help shows the option and its value: "-o, --output FILE"; for a list "--pid PID...".
[[nodiscard]] std::string option_head(const Option& option);
// The option's help with accepted values and default: "How to print it: text, jsonl or html (default text)".
[[nodiscard]] std::string option_help(const Option& option);

// Wraps between words to lines of at most `width`; a longer word gets its own line.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace rose::cli
