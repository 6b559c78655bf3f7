// Combines a Compose file and the files that it refers to (`include`, `extends`) into one tree, with variables
// substituted and paths of other folders made absolute. compose.h interprets the tree.
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
  std::string name;                          // from COMPOSE_PROJECT_NAME, the file's `name`, or its folder
  Yaml root;                                 // the combined tree, without `include` and `extends`
  std::vector<std::filesystem::path> files;  // Yaml::file is an index into them
  Variables without_value;                   // variables that are used but not set, with the first use: "FILE:LINE"
};

// The `further` files override the first one, one after the other, as with `docker compose -f A -f B`. All relative
// paths, and ${PWD}, refer to the first file's folder, wherever rose was called. Errors are ErrorKind::input with file
// and line.
[[nodiscard]] Result<Project> read_project(std::string_view text, const std::filesystem::path& file,
                                           const std::vector<std::filesystem::path>& further, const Lookup& lookup);

// Returns `own` merged over `base`, as for a service that extends another one. `key`: the key of both values ("" at the
// top), because values of some keys are merged in a special way.
[[nodiscard]] Yaml merged(const Yaml& base, const Yaml& own, std::string_view key = "");

// The path of a volume or device in the container, from its short or long form.
[[nodiscard]] std::string target_of(const Yaml& value);
// The content of a regular file of at most `most` bytes. Other kinds of files are refused, because a pipe or device
// could block. Errors are ErrorKind::input.
[[nodiscard]] Result<std::string> small_file(const std::filesystem::path& path, std::size_t most = kMostYamlBytes);
// Expands "~/x" and makes relative paths absolute, starting at `folder`.
[[nodiscard]] std::string path_from(const std::filesystem::path& folder, const std::string& text);
// True if a build context is downloaded: "https://...", "git@...".
[[nodiscard]] bool is_remote(std::string_view context);
// True for folders of the kernel and the system, which runs cannot have copies of.
[[nodiscard]] bool belongs_to_machine(const std::filesystem::path& source);
// True if the source of a volume is a folder rather than a named volume.
[[nodiscard]] bool is_folder(std::string_view source);

}  // namespace rose::compose
