// Stores runs on disk: their directories, some of which are kept, and a record of each run's schedule and result.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "replay/run.h"

namespace rose::replay {

// This many runs are kept although nobody requested it: the last ones that reproduced the bug or were inconclusive.
inline constexpr std::size_t kKeptRuns = 3;

// Thread-safe.
class RunStore {
 public:
  // With `report`, runs (runs/run-NNNN) and the record are stored in that folder. Otherwise runs are stored under
  // random names in a new temporary folder (runs_folder.h), which is removed if nothing in it is kept. `command`: later
  // runs of this command may remove the folder; "": later runs of any command may. Fails if anyone except root, this
  // user and the owner of `config` may replace folders on the path to the store.
  [[nodiscard]] static Result<RunStore> open(const std::optional<std::filesystem::path>& report, bool keep_all,
                                             std::string_view command = {}, const std::filesystem::path& config = {});
  RunStore(RunStore&& other) noexcept;
  RunStore& operator=(RunStore&&) = delete;
  ~RunStore();

  // A new, empty directory for run `number`.
  [[nodiscard]] Result<std::filesystem::path> next(int number);
  // Decides whether the run's directory is kept. Writes run.json to it, and a line to the record. If the directory was
  // removed, clears run.result.directory.
  [[nodiscard]] Result<void> done(Run& run, const schedule::Schedule& schedule);
  // Keeps the directories of runs without faults, because a resumed diagnosis needs their logs. Has no effect without a
  // report folder.
  void keep_control(bool on) { keep_control_ = on && report_.has_value(); }
  // The directory that contains the files of a run if they were kept. "" for a run that was not begun.
  [[nodiscard]] std::filesystem::path directory_of(int number) const;
  // The directories that are kept at present, in the order in which the runs ended.
  [[nodiscard]] std::vector<std::filesystem::path> kept() const;
  // Call this for a run that ended with an error. Its directory is kept only with keep_all.
  void abandoned(const std::filesystem::path& directory);

  // A run in the record of an earlier diagnosis. It has no trace.
  struct Recorded {
    std::string fingerprint;
    std::string backend;  // how syscall faults were injected
    schedule::RunResult result;
  };
  // The earlier runs in this report folder, by number (diagnose --resume). Removes what is incomplete because rose was
  // killed: an unfinished line, and folders of runs without a line. Fails with ErrorKind::input if the runs are of
  // another system than `config` describes.
  [[nodiscard]] Result<std::vector<Recorded>> recorded(const config::Config& config);
  // How many runs were made in parallel once the search had received `after_runs` runs. Written only if there is a
  // report folder.
  struct Jobs {
    int after_runs = 0;
    int jobs = 1;
  };
  [[nodiscard]] Result<void> record_jobs(const std::vector<Jobs>& decided);
  [[nodiscard]] Result<std::vector<Jobs>> recorded_jobs() const;
  // The trace of a recorded run. If it cannot be read, warns and returns an empty trace.
  [[nodiscard]] trace::Trace recorded_trace(int number) const;
  // Removes earlier records and starts a new record for this system. A diagnosis that does not resume calls this.
  [[nodiscard]] Result<void> start_over(const config::Config& config);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] bool has_report() const { return report_.has_value(); }

 private:
  RunStore() = default;
  std::filesystem::path folder_;
  std::optional<std::filesystem::path> report_;
  Fd in_use_;  // lock on the folder
  std::string command_;
  bool keep_all_ = false;
  bool keep_control_ = false;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // protects the record and kept_
  std::deque<std::filesystem::path> kept_;
  std::map<int, std::filesystem::path> begun_;  // used without a report folder
};

}  // namespace rose::replay
