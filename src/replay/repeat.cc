#include "replay/repeat.h"

#include "base/clock.h"

namespace rose::replay {

Result<Run> run_in(RunStore& store, const config::Config& config, const schedule::Schedule& schedule,
                   RunOptions options) {
  ROSE_TRY(options.run_dir, store.next(options.number));
  Result<Run> run = run_once(config, schedule, options);
  if (!run) {
    store.abandoned(options.run_dir);
    return run;
  }
  ROSE_CHECK(store.done(*run, schedule));
  return run;
}

Result<Repeated> repeat(const config::Config& config, const schedule::Schedule& schedule, int runs, RunOptions options,
                        RunStore& store, const std::function<void(const Run&, const schedule::Tally&)>& each) {
  Repeated repeated;
  const std::int64_t began = monotonic_ns();
  for (int i = 0; i < runs; ++i) {
    options.number = i + 1;
    ROSE_TRY(Run run, run_in(store, config, schedule, options));
    repeated.tally.add(run.result.verdict);
    run.result.trace = {};
    each(run, repeated.tally);
    repeated.runs.push_back(std::move(run));
  }
  repeated.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  return repeated;
}

}  // namespace rose::replay
