// Man pages made from the table of options: rose.1, rose-trace.1, rose-dump-show.1, ...
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"

namespace rose::cli {

// The page in man(7) macros, as man-db and mandoc read them.
[[nodiscard]] std::string man_page(const Program& program, const Command& command,
                                   const std::vector<std::string>& words);

// Writes every command's page into the folder, which is made when absent; gives the files' names.
[[nodiscard]] Result<std::vector<std::string>> write_man_pages(const Program& program,
                                                               const std::filesystem::path& folder);

}  // namespace rose::cli
