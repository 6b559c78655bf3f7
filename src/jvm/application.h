// Determines from a `java` command line which classes belong to the application: these are watched if the user names
// none.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rose::jvm {

// Returns globs of methods ("org.x.*", "Sessions.*") for a command that starts with java and names a main class. If the
// main class is in a package: that package, shortened to three components. Otherwise: the classes beside it on the
// class path. Empty if no main class is named (-jar, an argument file). `folder`: base of relative paths.
[[nodiscard]] std::vector<std::string> own_methods(const std::vector<std::string>& command,
                                                   const std::filesystem::path& folder);

}  // namespace rose::jvm
