#include "replay/repeat.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "replay/admission.h"

namespace rose::replay {
namespace {

// A run that is made ahead may take a quarter longer than the other runs. The workload determines how long runs of a
// deployment take, so a run that takes longer probably hangs because of its fault.
constexpr std::int64_t kGraceDivisor = 4;

}  // namespace

Result<Run> run_in(RunStore& store, const config::Config& config, const schedule::Schedule& schedule,
                   RunOptions options) {
  ROSE_TRY(options.run_dir, store.next(options.number));
  if (options.begin) options.begin(options.run_dir);
  Result<Run> run = run_once(config, schedule, options);
  // A cancelled run does not show the effect of its schedule, even if the oracle still answered.
  if (run && !options.cut_short_is_result)
    if (Result<void> go_on = cancel::check(); !go_on) run = Unexpected(std::move(go_on).error());
  if (!run) {
    store.abandoned(options.run_dir);
    return run;
  }
  if (options.look) options.look(options.run_dir, run->result);
  if (options.check) options.check(*run, schedule);
  if (!run->disturbed.empty()) {
    run->result.verdict = schedule::Verdict::inconclusive;
    run->result.reason = fmt::format("not counted: parallel runs changed its timing: {}", run->disturbed);
  }
  ROSE_CHECK(store.done(*run, schedule));
  return run;
}

Result<void> check_jobs(const config::Config& config, int jobs) {
  if (jobs == 1 || config.deployment.network == config::Network::netns) return {};
  return fail(
      ErrorKind::input,
      fmt::format("{}: {} runs in parallel need network = \"netns\"; with \"host\" they would compete for the same "
                  "ports",
                  config.file.string(), jobs),
      "set jobs = 1");
}

std::vector<Result<Run>> run_side_by_side(RunStore& store, const config::Config& config,
                                          const std::vector<const schedule::Schedule*>& schedules,
                                          const RunOptions& options, const schedule::Decides& decides,
                                          std::size_t ahead, std::size_t most_busy) {
  if (ahead > 0 && ahead >= schedules.size()) ROSE_BUG("all runs are made ahead, but at least one must be needed");
  const std::size_t needed = schedules.size() - ahead;
  const std::int64_t began = monotonic_ns();
  std::mutex mutex;  // protects `ended`
  std::condition_variable any_ended;
  std::size_t ended = 0;
  std::vector<std::optional<Result<Run>>> made(schedules.size());
  std::vector<cancel::Part> parts(schedules.size());
  Admission admission(most_busy > 0 ? most_busy : schedules.size());
  const auto one = [&](std::size_t i) {
    RunOptions own = options;
    own.number = options.number + static_cast<int>(i);
    if (i >= needed) own.wait_at_most_ns = 0;
    if (most_busy > 0) own.waiting.begin = [&admission, i] { admission.no_longer_busy(i); };
    {
      const cancel::Within within(parts[i]);
      if (admission.wait(i)) made[i] = run_in(store, config, *schedules[i], std::move(own));
      else made[i] = fail(ErrorKind::cancelled, "interrupted");
      admission.no_longer_busy(i);
    }
    Result<Run>& run = *made[i];
    if (!run && run.error().kind == ErrorKind::cancelled && parts[i].requested() && !cancel::requested()) {
      run = Run();
      run->result = stopped_run();
    } else if (run && decides && decides(i, run->result)) {
      for (std::size_t later = i + 1; later < parts.size(); ++later) parts[later].request();
    }
    const std::lock_guard lock(mutex);
    ++ended;
    any_ended.notify_all();
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < schedules.size(); ++i) others.emplace_back(one, i);
  if (!schedules.empty()) one(0);
  for (std::size_t i = 1; i < needed; ++i) others[i - 1].join();
  if (ahead > 0) {
    std::unique_lock lock(mutex);
    any_ended.wait_for(lock, std::chrono::nanoseconds((monotonic_ns() - began) / kGraceDivisor),
                       [&] { return ended == schedules.size(); });
    for (std::size_t i = needed; i < parts.size(); ++i) parts[i].request();
  }
  for (std::thread& other : others)
    if (other.joinable()) other.join();
  std::vector<Result<Run>> runs;
  for (std::optional<Result<Run>>& run : made) runs.push_back(*std::move(run));
  return runs;
}

schedule::RunResult stopped_run() {
  schedule::RunResult result;
  result.stopped = true;
  result.reason = "stopped, because a run made at the same time had reproduced the bug";
  return result;
}

Result<Repeated> repeat(const config::Config& config, const schedule::Schedule& schedule, int runs, int jobs,
                        RunOptions options, RunStore& store,
                        const std::function<void(const Run&, const schedule::Tally&)>& each) {
  Repeated repeated;
  const std::int64_t began = monotonic_ns();
  for (int next = 1; next <= runs; next += jobs) {
    options.number = next;
    const std::vector<const schedule::Schedule*> batch(static_cast<std::size_t>(std::min(jobs, runs - next + 1)),
                                                       &schedule);
    for (Result<Run>& made : run_side_by_side(store, config, batch, options)) {
      if (!made) return Unexpected(std::move(made).error());
      Run& run = *made;
      repeated.tally.add(run.result.verdict);
      run.result.trace = {};
      each(run, repeated.tally);
      repeated.runs.push_back(std::move(run));
    }
  }
  repeated.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  return repeated;
}

}  // namespace rose::replay
