// Determines from a `java` command line which classes belong to the application. These are watched if the user names no
// methods.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rose::jvm {

// Returns globs of methods ("org.x.*", "Sessions.*") for a command that starts with java and names a main class, a
// module or a jar. If the main class is in a package, the result is that package, shortened to three components;
// otherwise, the result is all classes in the main class's folder of the class path, or in the jar. Empty if the main
// class is unknown (an argument file, a jar that cannot be read). `folder`: base of relative paths.
[[nodiscard]] std::vector<std::string> own_methods(const std::vector<std::string>& command,
                                                   const std::filesystem::path& folder);

}  // namespace rose::jvm
