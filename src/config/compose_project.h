// What a Compose file and those that it names (`include`, `extends`) say together, as one tree: variables are put in,
// and paths of other files' folders are absolute. What the tree means, compose.h says.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "config/compose_words.h"

namespace rose::compose {

struct Project {
  Yaml root;                                 // without `include` and `extends`
  std::vector<std::filesystem::path> files;  // Yaml::file counts in them
  Variables without_value;                   // variables that stand somewhere, and where: "FILE:LINE"
};

// `further` files are put over it, one after the other, as those of `docker compose -f A -f B`: all paths start at the
// first one's folder. Errors are ErrorKind::input, with file and line.
[[nodiscard]] Result<Project> read_project(std::string_view text, const std::filesystem::path& file,
                                           const std::vector<std::filesystem::path>& further, const Lookup& lookup);

// `own` over `base`, as Compose puts a service over the one that it extends.
[[nodiscard]] Yaml merged(const Yaml& base, const Yaml& own, std::string_view key = "");

// Where a volume or device is in the container, of its short or long form.
[[nodiscard]] std::string target_of(const Yaml& value);
// What is in a regular file (a pipe or device would hold rose up) of at most kMostYamlBytes. Errors are
// ErrorKind::input.
[[nodiscard]] Result<std::string> small_file(const std::filesystem::path& path);
// "~/x" and relative paths, which start at `folder`.
[[nodiscard]] std::string path_from(const std::filesystem::path& folder, const std::string& text);
// Is it fetched from elsewhere: "https://...", "git@..."?
[[nodiscard]] bool is_remote(std::string_view context);
// Does the source of a volume name a folder, rather than a volume?
[[nodiscard]] bool is_folder(std::string_view source);

}  // namespace rose::compose
