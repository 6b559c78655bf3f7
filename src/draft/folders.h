// Where a node writes. Folders that its command line names move into the run's folder; what only its configuration file
// names is covered, so that a test deployment never touches what the running one has. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "draft/facts.h"
#include "draft/words.h"

namespace rose::draft {

struct Moved {
  std::map<std::string, std::string> places;  // "/var/lib/x" -> "${dir}/x"
  std::vector<std::string> folders;           // "x": to be made before the node starts
  std::vector<std::string> changes;           // "/var/lib/x of --data: ${dir}/x, empty in each run"
};

// Which of the folders and files that the words (and variables) name are the node's own, and where they go.
[[nodiscard]] Moved find_places(const Seen& seen, const Words& words, const Variables& variables);

// Puts the new places, and absolute paths for relative ones, into the words.
void move_words(const Seen& seen, Words& words, Moved& moved);
[[nodiscard]] std::string move_value(const Seen& seen, const std::string& value, const Moved& moved);

// What is written outside of those places: the folders (or single files) to cover with empty ones. `uncovered` are Unix
// sockets in folders that everybody uses.
struct Covers {
  std::vector<std::string> paths;
  std::vector<std::string> uncovered;
};
[[nodiscard]] Covers find_covers(const Seen& seen, const Words& words, const Moved& moved);

// Word `i`, or this part of it, is meant as a path: "e1" of "--data-dir e1", not of "--name e1".
[[nodiscard]] bool says_path(const Seen& seen, const Words& words, std::size_t i, std::string_view part);

// `path` is `folder` or below it.
[[nodiscard]] bool is_below(std::string_view path, std::string_view folder);

}  // namespace rose::draft
