// Where runs live when no report folder is named: all of a user's in one place, from which old ones go by themselves.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::replay {

// What stays of earlier commands: the newest, all that somebody asked to keep, none older than this; and all that are
// in use.
inline constexpr std::size_t kKeptFolders = 5;
inline constexpr int kKeptDays = 7;

struct RunsFolder {
  std::filesystem::path path;  // fresh and empty
  Fd in_use;                   // while this is open, nobody clears it away
};
// A folder below `temporary`/rose-runs (with the user's number, unless it is root). Should that be somebody else's, who
// may write there could exchange it under rose: then a folder of its own in `temporary`. Clears old ones away.
[[nodiscard]] Result<RunsFolder> make_runs_folder(const std::filesystem::path& temporary);

// It stays until it is as old as that, however many newer ones there are.
void keep_runs_folder(const std::filesystem::path& folder);

// The files called `name` in the folders of runs below `temporary`/rose-runs: what runs that are under way show of
// themselves.
[[nodiscard]] std::vector<std::filesystem::path> in_runs_folders(const std::filesystem::path& temporary,
                                                                 const std::string& name);

}  // namespace rose::replay
