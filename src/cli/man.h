// Generates man pages from the table of options: rose.1, rose-trace.1, rose-dump-show.1, ...
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"

namespace rose::cli {

// The page in man(7) macros, for man-db and mandoc.
[[nodiscard]] std::string man_page(const Program& program, const Command& command,
                                   const std::vector<std::string>& words);

// Writes the pages of all commands to the folder, which is created if necessary. Returns the file names.
[[nodiscard]] Result<std::vector<std::string>> write_man_pages(const Program& program,
                                                               const std::filesystem::path& folder);

}  // namespace rose::cli
