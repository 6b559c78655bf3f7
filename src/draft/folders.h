// Determines where a node writes. Folders named on its command line are replaced by new folders in the run's folder;
// folders named only in its configuration file are covered by mounts. A test deployment thus never touches data of the
// running system. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "draft/facts.h"
#include "draft/words.h"

namespace rose::draft {

struct Moved {
  std::map<std::string, std::string> places;  // "/var/lib/x" -> "${dir}/x"
  std::vector<std::string> folders;           // "x": to be created before the node starts
  std::vector<std::string> changes;           // "/var/lib/x of --data: ${dir}/x, empty in each run"
};

// Finds the folders and files that the words and variables name and that seem to contain the node's own data. Chooses
// their new locations.
[[nodiscard]] Moved find_places(const Seen& seen, const Words& words, const Variables& variables);

// Replaces paths by their new locations, and relative paths by absolute ones.
void move_words(const Seen& seen, Words& words, Moved& moved);
[[nodiscard]] std::string move_value(const Seen& seen, const std::string& value, const Moved& moved);

// The paths that a node writes outside the moved locations. `paths`: folders and single files that are covered with
// empty ones in a run. `uncovered`: Unix sockets in folders of many programs, which cannot be covered.
struct Covers {
  std::vector<std::string> paths;
  std::vector<std::string> uncovered;
  std::vector<std::string> overlays;  // folders that it may write to, and that contain what it needs
};
[[nodiscard]] Covers find_covers(const Seen& seen, const Words& words, const Moved& moved,
                                 const std::vector<std::string>& homes = {});

// The folders in which a node works: its working directory and the folders that its command line enters (--chdir). A
// run needs the files that the node reads there by relative names, so each folder gets an overlay of itself. `left`:
// folders for which that is impossible, because many programs share them.
struct Homes {
  std::vector<std::string> folders;
  std::string begins_in;  // the working directory, if it is one of `folders`; otherwise ""
  std::vector<std::string> left;
  // Adds a folder, unless it is inside one of `folders`, because the overlay of that folder includes it.
  void add(const std::string& path);
};
[[nodiscard]] Homes find_homes(const Seen& seen, const Words& words);

// True if word `i`, or this part of it, is meant as a path: "e1" in "--data-dir e1" but not in "--name e1".
[[nodiscard]] bool says_path(const Seen& seen, const Words& words, std::size_t i, std::string_view part);

// True if `path` is `folder` or below it.
[[nodiscard]] bool is_below(std::string_view path, std::string_view folder);

}  // namespace rose::draft
