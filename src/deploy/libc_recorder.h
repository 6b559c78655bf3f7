// librose-rr-libc.so, carried inside of rose: what records a program's times, chances, names and readiness without the
// program knowing of it (rr/libc/interpose.cc).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::deploy {

inline constexpr const char* kLibcRecorderName = "rose-rr-libc.so";

// The file, made in `folder`. ErrorKind::environment: this build of rose carries none (it has sanitizers).
[[nodiscard]] Result<std::filesystem::path> place_libc_recorder(const std::filesystem::path& folder);
// ErrorKind::input when the dynamic loader does not load it into this program: one that is linked statically, or of
// another architecture.
[[nodiscard]] Result<void> check_takes_recorder(const std::filesystem::path& program);
// LD_PRELOAD and ROSE_RR_LIBC as the program is to have them.
void add_libc_recorder(std::map<std::string, std::string>& env, const std::filesystem::path& library,
                       const std::vector<std::string>& sources);

}  // namespace rose::deploy
