// What a jar file states about the application in it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rose::jvm {

struct Jar {
  std::string main;                  // its main class: "org.x.Server"; "": the manifest names none
  std::vector<std::string> classes;  // if it is in no package: all classes that are in none, at most kMostClasses
};
inline constexpr std::size_t kMostClasses = 400;

// Nothing if the file cannot be read or is no jar. For an application that brings its own loader (Spring Boot), `main`
// is the class that the loader starts.
[[nodiscard]] std::optional<Jar> read_jar(const std::filesystem::path& file);

// The main class in the text of a manifest (JAR File Specification, "JAR Manifest"): lines of at most 72 bytes,
// continued by a line that begins with a blank.
[[nodiscard]] std::string main_class(const std::string& manifest);

}  // namespace rose::jvm
