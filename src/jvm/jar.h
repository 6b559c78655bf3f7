// Determines what a jar file states about the application that it contains.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rose::jvm {

struct Jar {
  std::string main;  // the main class, "org.x.Server"; "": the manifest names none
  // if the main class is in no package: all classes that are in no package, at most kMostClasses
  std::vector<std::string> classes;
};
inline constexpr std::size_t kMostClasses = 400;

// Returns nothing if the file cannot be read or is no jar. If the application brings its own loader (Spring Boot),
// `main` is the class that the loader starts.
[[nodiscard]] std::optional<Jar> read_jar(const std::filesystem::path& file);

// The main class in the text of a manifest (JAR File Specification, "JAR Manifest"). A line has at most 72 bytes; it is
// continued by lines that begin with a blank.
[[nodiscard]] std::string main_class(const std::string& manifest);

}  // namespace rose::jvm
