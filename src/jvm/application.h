// Which of a JVM's classes are the application's own, by how `java` is called: what is to be watched where nobody named
// any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rose::jvm {

// Globs of methods ("org.x.*", "Sessions.*") for a command whose first word is java, any options, a main class and its
// arguments. Of a main class in a package all of its package, shortened to three parts; of one without a package the
// classes that lie beside it on the class path. None where no main class is named (-jar, an argument file). `folder`:
// what relative paths begin at.
[[nodiscard]] std::vector<std::string> own_methods(const std::vector<std::string>& command,
                                                   const std::filesystem::path& folder);

}  // namespace rose::jvm
