// Finds programs by name in PATH, as a shell does.
#pragma once

#include <string>
#include <string_view>

namespace rose {

// The PATH that shells use if the variable is not set.
inline constexpr std::string_view kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// True for a regular file that this process may execute.
[[nodiscard]] bool is_program(const std::string& path);

// Searches the folders of `path` ("" means kUsualPath) for `name`, which contains no slash. Returns "" if it is not
// found. Empty and relative folders are skipped, because they depend on the current directory.
[[nodiscard]] std::string program_in(std::string_view path, std::string_view name);

// Searches the PATH of this process.
[[nodiscard]] std::string program_in_path(std::string_view name);

}  // namespace rose
