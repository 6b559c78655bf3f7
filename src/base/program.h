// Programs by name, as a shell finds them.
#pragma once

#include <string>
#include <string_view>

namespace rose {

// What a shell takes for PATH where there is none.
inline constexpr std::string_view kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// A regular file that this process may execute.
[[nodiscard]] bool is_program(const std::string& path);

// The program that `name`, which has no slash, stands for in `path` ("": the usual one); "" when it stands for none.
// Entries that are empty or relative mean some current directory, and are passed over.
[[nodiscard]] std::string program_in(std::string_view path, std::string_view name);

// The same in this process's PATH.
[[nodiscard]] std::string program_in_path(std::string_view name);

}  // namespace rose
