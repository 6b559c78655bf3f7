// Where runs live on disk: run directories, which of them are kept, and the record of what each
// run requested and showed.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "replay/run.h"

namespace rose::replay {

// Runs kept although nobody asked: those that reproduced or could not be judged, the last few.
inline constexpr std::size_t kKeptRuns = 3;

// Safe to use from several runs at once.
class RunStore {
 public:
  // With `report`, runs live below it and the record is written there; else in a fresh folder among the temporary ones
  // (runs_folder.h), which is removed when nothing in it is kept.
  [[nodiscard]] static Result<RunStore> open(const std::optional<std::filesystem::path>& report, bool keep_all);
  RunStore(RunStore&& other) noexcept;
  RunStore& operator=(RunStore&&) = delete;
  ~RunStore();

  // A fresh, empty directory for run `number`.
  [[nodiscard]] Result<std::filesystem::path> next(int number);
  // Decides whether the run's directory stays; writes run.json into it, and a line into the record.
  // Clears run.result.directory when it was removed.
  [[nodiscard]] Result<void> done(Run& run, const schedule::Schedule& schedule);
  // Directories of runs without faults stay meanwhile, where there is a record: who goes on from it needs what their
  // logs say.
  void keep_control(bool on) { keep_control_ = on && report_.has_value(); }
  // Where a run's files are, if they were kept.
  [[nodiscard]] std::filesystem::path directory_of(int number) const;
  // For runs that ended in an error: their directory is kept only with keep_all.
  void abandoned(const std::filesystem::path& directory);

  // Earlier runs of this report folder by their numbers (diagnose --resume), without their traces. What a killed
  // rose left half done is cleared away: a line that was not written to its end, the folders of runs without a line.
  // Error (input) when the runs were those of another system than `config` describes.
  struct Recorded {
    std::string fingerprint;
    std::string backend;  // of syscall faults
    schedule::RunResult result;
  };
  [[nodiscard]] Result<std::vector<Recorded>> recorded(const config::Config& config);
  // Empty, with a warning, when it cannot be read.
  [[nodiscard]] trace::Trace recorded_trace(int number) const;
  // Forgets earlier records: a diagnosis that does not resume starts a new one, of runs of this system.
  [[nodiscard]] Result<void> start_over(const config::Config& config);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] bool has_report() const { return report_.has_value(); }

 private:
  RunStore() = default;
  std::filesystem::path folder_;
  std::optional<std::filesystem::path> report_;
  Fd in_use_;  // the lock of the folder
  bool keep_all_ = false;
  bool keep_control_ = false;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // for the record and kept_
  std::deque<std::filesystem::path> kept_;
};

}  // namespace rose::replay
