// Makes the runs that `rose explain` compares, and extracts their logs and requested values in comparable form.
#pragma once

#include <memory>

#include "explain/explain.h"
#include "replay/ask.h"
#include "replay/contrast.h"
#include "replay/watchable.h"

namespace rose::cli {

struct Compared {
  replay::Contrast made;
  explain::Input input;
  std::vector<std::uint32_t> questions;      // the position of each query in input.questions
  std::set<std::uint32_t> unasked;           // positions of the queries that only earlier runs recorded
  std::vector<replay::JavaAnswer> refusals;  // from JVMs: why they cannot answer a query
  bool comparable = false;                   // there are both failing and correct runs
  double seconds = 0;                        // wall-clock time in total
  double run_seconds = 0;                    // sum over the runs
  double value_seconds = 0;  // part of run_seconds spent on reading values, estimated from the cost per read
};

class ComparedRuns {
 public:
  // Keeps references to all arguments. Fills in the tracer, profile and queries of `options`.
  ComparedRuns(const config::Config& config, const replay::Watchable& watchable, const schedule::Schedule& schedule,
               replay::ContrastOptions options, replay::RunStore& store);
  ~ComparedRuns();
  ComparedRuns(const ComparedRuns&) = delete;
  ComparedRuns& operator=(const ComparedRuns&) = delete;

  // Makes runs in which `asked` is recorded; the result keeps a reference to `asked`. If differences may be noise,
  // makes a few more failing and correct runs. Compares the runs of `before` together with the new runs. The run whose
  // story is reported is one of the new runs.
  [[nodiscard]] Result<Compared> make(const replay::ValueQueries& asked, std::size_t besides,
                                      explain::Input before = {});
  // Records callers (`asked`) from the first fault on, in runs of the schedule. Makes a few runs at most, until one
  // reproduces the bug. Empty if none did.
  [[nodiscard]] Result<std::vector<explain::Call>> callers(const replay::ValueQueries& asked);
  // Like callers(), but in runs without faults, and from the time `since_ns` after the beginning of the workload. Empty
  // if the bug occurred in all of these runs.
  [[nodiscard]] Result<std::vector<explain::Call>> callers_without_faults(const replay::ValueQueries& asked,
                                                                          std::int64_t since_ns);
  // Sets whether more runs than requested may be made because of noise; false if the user has given a number.
  void may_add(bool may) { may_add_ = may; }
  [[nodiscard]] int made() const { return made_; }  // in total

 private:
  class RunLogs;
  [[nodiscard]] Result<std::vector<explain::Call>> record_callers(const replay::ValueQueries& asked,
                                                                  const schedule::Schedule& schedule,
                                                                  schedule::Verdict wanted,
                                                                  std::optional<std::int64_t> since_ns);
  // Adds missing Java frames to stacks (explain/stacks_before.h). The first call makes a run to record these frames.
  [[nodiscard]] Result<void> complete_java_stacks(explain::Input& input);
  [[nodiscard]] Result<void> add(const replay::ValueQueries& asked, const replay::ContrastOptions& options,
                                 bool& story_taken, Compared& out);
  static void take_run(replay::Run&& run, replay::ContrastRun what, RunLogs& logs, Compared& out, bool& story_taken);

  const replay::Watchable& watchable_;
  const schedule::Schedule& schedule_;
  replay::ContrastOptions options_;
  replay::RunStore& store_;
  std::unique_ptr<RunLogs> logs_;
  // outcomes of the run that complete_java_stacks() made
  std::optional<std::vector<schedule::FaultOutcome>> before_calls_;
  // where Python functions begin, by node and function
  std::map<std::pair<std::string, std::string>, std::pair<std::string, int>> python_places_;
  int made_ = 0;
  bool may_add_ = true;
};

}  // namespace rose::cli
