// The folder for runs of commands that have no report folder. Each user has one, and old runs in it are removed
// automatically.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::replay {

// For each command, these earlier runs are kept: the newest folders (kKeptFolders), and all that the user requested to
// keep, unless they are older than kKeptDays. Folders in use are always kept. Runs of another command are not removed,
// because a user may replay the schedule of a diagnosis and still need the runs that the diagnosis kept.
inline constexpr std::size_t kKeptFolders = 5;
inline constexpr int kKeptDays = 7;

struct RunsFolder {
  std::filesystem::path path;  // new and empty
  Fd in_use;                   // while it is open, the folder is not removed
};
// Creates a folder with a random number as its name in `temporary`/rose-runs (for users other than root, the name of
// rose-runs contains the user's number). If rose-runs belongs to another user, who could replace it, creates a separate
// folder in `temporary`. Fails if others may rename entries of `temporary`. Removes old folders of the same command,
// and those of commands that were killed.
[[nodiscard]] Result<RunsFolder> make_runs_folder(const std::filesystem::path& temporary,
                                                  std::string_view command = {});

// `prefix` and ten random digits, so that nobody can have created a link of that name beforehand. It uses digits
// because tools that replace numbers in paths then see the same path in all runs.
[[nodiscard]] std::string unforeseen_name(std::string_view prefix);

// Releases the folder, so that later runs of this command may remove it. With `asked_for`, it is kept until it reaches
// the maximum age, however many newer folders there are.
void keep_runs_folder(const std::filesystem::path& folder, bool asked_for, std::string_view command = {});

// Removes the folder of a run that has ended. A process that was killed during a run may have left the folder as a
// mount point (deploy/names.h) that its guardian has not removed yet.
void remove_run(const std::filesystem::path& run);
// Like remove_run(), for a folder that contains runs.
void remove_runs(const std::filesystem::path& folder);

// The files called `name` in the run folders below `temporary`/rose-runs, for example the sockets of running runs.
[[nodiscard]] std::vector<std::filesystem::path> in_runs_folders(const std::filesystem::path& temporary,
                                                                 const std::string& name);

}  // namespace rose::replay
