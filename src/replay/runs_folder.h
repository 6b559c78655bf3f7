// The place for runs without a report folder: one per user, in which old runs are removed automatically.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::replay {

// What is kept of earlier runs of a command: the newest folders (kKeptFolders), and all that were requested, but none
// older than kKeptDays; folders in use are always kept. Another command does not remove them, because a user who reads
// what a diagnosis kept may replay its schedule meanwhile.
inline constexpr std::size_t kKeptFolders = 5;
inline constexpr int kKeptDays = 7;

struct RunsFolder {
  std::filesystem::path path;  // new and empty
  Fd in_use;                   // while it is open, the folder is not removed
};
// Creates a folder named by a random number in `temporary`/rose-runs (with the user's number unless root). If that
// belongs to another user, who could replace it, creates a separate folder in `temporary`. An error if others may
// rename entries of `temporary`. Removes old folders of the same command, and those of commands that were killed.
[[nodiscard]] Result<RunsFolder> make_runs_folder(const std::filesystem::path& temporary,
                                                  std::string_view command = {});

// `prefix` and ten random digits, so that nobody can have created a link of that name beforehand. Digits, because tools
// that replace numbers in paths then see the same path in all runs.
[[nodiscard]] std::string unforeseen_name(std::string_view prefix);

// Releases the folder; later runs of this command may remove it. `asked_for`: it is kept until it reaches the maximum
// age, however many newer ones there are.
void keep_runs_folder(const std::filesystem::path& folder, bool asked_for, std::string_view command = {});

// Removes the folder of a run that has ended. A process that was killed during a run may have left the folder mounted
// on itself (deploy/names.h), and its guardian may not have reached it yet.
void remove_run(const std::filesystem::path& run);
// Like remove_run(), for a folder that contains runs.
void remove_runs(const std::filesystem::path& folder);

// The files called `name` in the run folders below `temporary`/rose-runs, for example the sockets of running runs.
[[nodiscard]] std::vector<std::filesystem::path> in_runs_folders(const std::filesystem::path& temporary,
                                                                 const std::string& name);

}  // namespace rose::replay
