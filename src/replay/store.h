// Stores runs on disk: run directories, which of them are kept, and the record of what each run requested and showed.
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

// The number of kept runs without a request: the last ones that reproduced the bug or were inconclusive.
inline constexpr std::size_t kKeptRuns = 3;

// Thread-safe.
class RunStore {
 public:
  // With `report`, runs (runs/run-NNNN) and the record are stored there; otherwise in a new temporary folder
  // (runs_folder.h), by random names, which is removed if nothing in it is kept. `command`: the command whose later
  // runs may remove the folder; "": any command's may. Fails if others than root, this user and the owner of `config`
  // may exchange the folders on the way.
  [[nodiscard]] static Result<RunStore> open(const std::optional<std::filesystem::path>& report, bool keep_all,
                                             std::string_view command = {}, const std::filesystem::path& config = {});
  RunStore(RunStore&& other) noexcept;
  RunStore& operator=(RunStore&&) = delete;
  ~RunStore();

  // A new, empty directory for run `number`.
  [[nodiscard]] Result<std::filesystem::path> next(int number);
  // Decides whether the run's directory is kept; writes run.json to it and a line to the record. Clears
  // run.result.directory if it was removed.
  [[nodiscard]] Result<void> done(Run& run, const schedule::Schedule& schedule);
  // Keeps directories of runs without faults if there is a record, because a resumed diagnosis needs their logs.
  void keep_control(bool on) { keep_control_ = on && report_.has_value(); }
  // Where a run's files are if they were kept; "" for a run that was not begun.
  [[nodiscard]] std::filesystem::path directory_of(int number) const;
  // The directories that are kept now, in the order of their runs' ends.
  [[nodiscard]] std::vector<std::filesystem::path> kept() const;
  // Called for runs that ended with an error: their directory is kept only with keep_all.
  void abandoned(const std::filesystem::path& directory);

  // A run in the record of an earlier diagnosis, without its trace.
  struct Recorded {
    std::string fingerprint;
    std::string backend;  // used for syscall faults
    schedule::RunResult result;
  };
  // The earlier runs in this report folder, by number (diagnose --resume). Removes what a killed rose left incomplete:
  // an unfinished line, and folders of runs without a line. Returns ErrorKind::input if the runs are of another system
  // than `config` describes.
  [[nodiscard]] Result<std::vector<Recorded>> recorded(const config::Config& config);
  // How many runs were made in parallel once the search had got `after_runs` runs. Written only with a report folder.
  struct Jobs {
    int after_runs = 0;
    int jobs = 1;
  };
  [[nodiscard]] Result<void> record_jobs(const std::vector<Jobs>& decided);
  [[nodiscard]] Result<std::vector<Jobs>> recorded_jobs() const;
  // The trace of a recorded run. Empty, with a warning, if it cannot be read.
  [[nodiscard]] trace::Trace recorded_trace(int number) const;
  // Removes earlier records: a diagnosis that does not resume starts a new one for this system.
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
  std::map<int, std::filesystem::path> begun_;  // without a report
};

}  // namespace rose::replay
