// librose-rr-libc.so, embedded in rose. It records the times, random numbers, resolved names and readiness events that
// a program gets, without changes to the program. rr/libc/interpose.cc implements it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::deploy {

inline constexpr const char* kLibcRecorderName = "rose-rr-libc.so";

// Creates the library in `folder`. Returns ErrorKind::environment if this build does not contain the library, as is the
// case for builds with sanitizers.
[[nodiscard]] Result<std::filesystem::path> place_libc_recorder(const std::filesystem::path& folder);
// Returns ErrorKind::input if the dynamic loader cannot load the library into this program, because the program is
// statically linked or has another architecture.
[[nodiscard]] Result<void> check_takes_recorder(const std::filesystem::path& program);
// Sets LD_PRELOAD and ROSE_RR_LIBC for the program.
void add_libc_recorder(std::map<std::string, std::string>& env, const std::filesystem::path& library,
                       const std::vector<std::string>& sources);

}  // namespace rose::deploy
