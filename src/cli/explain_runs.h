// The runs that `rose explain` compares, with what their logs and the values that are asked for show, in the form in
// which they are compared.
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
  std::vector<replay::JavaAnswer> said;  // by JVMs: why they don't answer a question
  bool comparable = false;               // there are failing and sound runs
  double seconds = 0;                    // in all
  double run_seconds = 0;                // of the runs, added up
  double value_seconds = 0;              // of them, that reading values took, by what one place costs
};

class ComparedRuns {
 public:
  // All are kept by reference. `options`: its tracer, profile and questions are filled in here.
  ComparedRuns(const config::Config& config, const replay::Watchable& watchable, const schedule::Schedule& schedule,
               replay::ContrastOptions options, replay::RunStore& store);
  ~ComparedRuns();
  ComparedRuns(const ComparedRuns&) = delete;
  ComparedRuns& operator=(const ComparedRuns&) = delete;

  // Makes runs in which `asked` is read; its input lives no longer than this. Where what differs may be noise, a few
  // more of each side.
  [[nodiscard]] Result<Compared> make(const replay::Asked& asked, std::size_t besides);
  // A run of the schedule in which `asked` is about callers: who called what, in the first of a few that reproduces.
  // None: none did.
  [[nodiscard]] Result<std::vector<explain::Call>> callers(const replay::Asked& asked);
  // Whether more runs than wanted may be made where noise needs them: not where the user said how many.
  void may_add(bool may) { may_add_ = may; }
  [[nodiscard]] int made() const { return made_; }  // in all

 private:
  class RunLogs;
  [[nodiscard]] Result<void> add(const replay::Asked& asked, const replay::ContrastOptions& options, bool& told,
                                 Compared& out);
  static void take_run(replay::Run&& run, replay::ContrastRun what, RunLogs& logs, explain::Input& input, bool& told);

  const replay::Watchable& watchable_;
  const schedule::Schedule& schedule_;
  replay::ContrastOptions options_;
  replay::RunStore& store_;
  std::unique_ptr<RunLogs> logs_;
  int made_ = 0;
  bool may_add_ = true;
};

}  // namespace rose::cli
