#include "cli/cluster_runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "diagnose/survey.h"
#include "report/results.h"

namespace rose::cli {
namespace {

// how many of the runs that were made ahead are kept in memory, each with its trace
constexpr std::size_t kMostGuessed = 16;

// False for control runs, which have no faults, and for surveys, whose faults only count calls.
bool breaks_anything(const schedule::Schedule& schedule) {
  return !std::all_of(schedule.faults.begin(), schedule.faults.end(), diagnose::is_counter);
}

}  // namespace

ClusterRunner::ClusterRunner(const config::Config& config, const std::optional<profile::Profile>& profile,
                             replay::RunStore& store, jvm::CodeBook& methods, bool allow_attached,
                             std::vector<replay::RunStore::Recorded> recorded)
    : config_(config), store_(store) {
  options_.tracer = replay::tracer_options(config);
  options_.allow_attached = allow_attached;
  options_.code_book = &methods;
  if (profile) options_.profile = &*profile, options_.usual = replay::usual_of(*profile);
  for (replay::RunStore::Recorded& run : recorded) {
    next_number_ = std::max(next_number_, run.result.number + 1);
    if (!run.backend.empty()) backend_ = run.backend;
    recorded_[run.fingerprint].push_back(std::move(run.result));
  }
}

Result<schedule::RunResult> ClusterRunner::run(const schedule::Schedule& schedule) {
  return std::move(run_all({&schedule}, {}).front());
}

std::vector<Result<schedule::RunResult>> ClusterRunner::run_all(const std::vector<const schedule::Schedule*>& schedules,
                                                                const schedule::Decides& decides) {
  // Count these runs before they are made: if the number of parallel runs changes meanwhile, the change then applies
  // only to later requests, and a resumed search makes this request in the same way.
  handed_out_ += static_cast<int>(schedules.size());
  std::vector<std::optional<Result<schedule::RunResult>>> results(schedules.size());
  std::vector<const schedule::Schedule*> todo;
  std::vector<std::size_t> places;
  bool decided = false;  // a recorded run decided the request, so the runs after it were stopped and have no record
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    if (std::optional<schedule::RunResult> known = next_recorded(*schedules[i])) {
      decided = decided || (decides && decides(i, *known));
      results[i] = *std::move(known);
    } else if (decided) {
      results[i] = replay::stopped_run();
    } else {
      todo.push_back(schedules[i]);
      places.push_back(i);
    }
  }
  if (to_measure_ && tried_ && !todo.empty())
    if (Result<void> measured = measure_in_parallel(); !measured) {
      to_measure_.reset();
      log::warning("parallel runs: {}, because control runs in parallel failed: {}", side_by_side(),
                   measured.error().message);
    }
  const schedule::Decides decides_todo =
      decides ? [&](std::size_t i, const schedule::RunResult& result) { return decides(places[i], result); }
              : schedule::Decides();
  std::vector<Result<replay::Run>> made = ahead_ == nullptr ? run_here(todo, decides_todo) : run_elsewhere(todo);
  expected_.clear();
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!made[i]) {
      results[places[i]] = Unexpected(std::move(made[i]).error());
      continue;
    }
    if (made[i]->result.stopped) {
      results[places[i]] = std::move(made[i]->result);
      continue;
    }
    log::debug("run {}: {} ({})\n{}", made[i]->result.number, schedule::verdict_name(made[i]->result.verdict),
               made[i]->result.reason, report::fault_table(*todo[i], made[i]->result));
    if (!made[i]->backend.empty()) backend_ = made[i]->backend;
    // If the workload fails without faults, later runs would not exercise the system either, so warn. If the workload
    // fails in a run with faults, the faults may be the reason.
    if (todo[i]->faults.empty() && made[i]->completed && !made[i]->workload.ok())
      log::warning("control run without faults: the workload {}", made[i]->workload.note);
    remember(*todo[i], made[i]->result);
    results[places[i]] = std::move(made[i]->result);
  }
  for (const schedule::Schedule* schedule : schedules) tried_ = tried_ || breaks_anything(*schedule);
  std::vector<Result<schedule::RunResult>> all;
  for (std::optional<Result<schedule::RunResult>>& result : results) all.push_back(*std::move(result));
  if (decides) set_aside(schedules, decides, all);
  return all;
}

int ClusterRunner::side_by_side() const {
  // An interrupted diagnosis is resumed with the same number of parallel runs, so that it makes the requests that its
  // record contains.
  int jobs = 1;
  for (const replay::RunStore::Jobs& decided : jobs_)
    if (decided.after_runs <= handed_out_) jobs = decided.jobs;
  return jobs;
}

int ClusterRunner::most_side_by_side() const {
  if (config_.diagnose.jobs) return *config_.diagnose.jobs;
  int most = 1;
  for (const replay::RunStore::Jobs& decided : jobs_) most = std::max(most, decided.jobs);
  return most;
}

Result<void> ClusterRunner::choose_jobs(bool resumed) {
  if (config_.diagnose.jobs) return {};
  if (resumed) {
    ROSE_TRY(jobs_, store_.recorded_jobs());
  }
  if (!jobs_.empty()) {
    log::info("parallel runs: {}, as before", jobs_.back().jobs);
    return {};
  }
  log::info("making a control run without faults");
  options_.number = next_number_;
  ROSE_TRY(to_measure_, replay::measure_alone(store_, config_, without_faults(), options_));
  log::debug("a control run: ready after {:.2f} s and {:.2f} s of processor time, {:.2f} s in all; {} fit",
             static_cast<double>(to_measure_->alone.ready_ns) / 1e9, to_measure_->alone.start_cpu_seconds,
             to_measure_->alone.cpu_seconds, to_measure_->fit);
  outside_ = to_measure_->changed;
  waiting_ = to_measure_->waiting;
  take_control_runs();
  // If nodes write outside the folder of the run, even two runs in parallel may interfere with each other.
  if (to_measure_->fit == 1 || !to_measure_->changed.empty()) return measure_in_parallel();
  log::info("parallel runs: 2 for the first schedule; then control runs show how many this machine can make at a time");
  return decide(2);
}

schedule::Schedule ClusterRunner::without_faults() const {
  schedule::Schedule none;
  none.name = config_.name;
  return none;
}

Result<void> ClusterRunner::measure_in_parallel() {
  if (to_measure_->fit >= 2 * proven_)
    log::info("making control runs in parallel, to find how many runs this machine can make at a time");
  options_.number = to_measure_->next_number = next_number_;
  options_.check = {};
  ROSE_CHECK(replay::measure_in_parallel(*to_measure_, store_, config_, without_faults(), options_, proven_));
  take_control_runs();
  const replay::SideBySide made = *std::exchange(to_measure_, std::nullopt);
  log::info("parallel runs: {} ({})", made.jobs, made.words);
  return decide(made.jobs);
}

void ClusterRunner::take_control_runs() {
  next_number_ = to_measure_->next_number;
  range_ = to_measure_->range;
  for (replay::Run& run : std::exchange(to_measure_->control_runs, {})) {
    if (run.completed && !run.workload.ok())
      log::warning("control run without faults: the workload {}", run.workload.note);
    give(without_faults(), std::move(run.result));
  }
}

void ClusterRunner::note_proof(const std::vector<const schedule::Schedule*>& batch,
                               const std::vector<Result<replay::Run>>& runs) {
  bool survey_in_range = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i] || !runs[i]->completed || !runs[i]->disturbed.empty()) return;
    survey_in_range = survey_in_range || (!breaks_anything(*batch[i]) && range_.outside(runs[i]->load, false).empty());
  }
  if (survey_in_range) proven_ = std::max(proven_, static_cast<int>(runs.size()));
}

// Assumption: if the workload of a run takes longer than it can without faults, it takes as long in further runs of the
// same schedule, because they wait for the same timeouts. Further runs can start during this time. The runs of other
// schedules do not wait like this.
int ClusterRunner::repeats(const schedule::Schedule& schedule) const {
  const int jobs = config_.diagnose.jobs.value_or(side_by_side());
  const schedule::RunResult* hit = reproducing(schedule);
  if (!may_overlap() || ahead_ != nullptr || range_.workload_ns == 0 || hit == nullptr) return jobs;
  return hit->workload_end_ns.value_or(0) > range_.workload_ns ? std::max(jobs, waiting_) : jobs;
}

void ClusterRunner::compare_paths(const replay::Run& run) {
  if (apart_ || !outside_ || run.result.trace.events.empty()) return;
  apart_ = replay::shared_path(*outside_, replay::changed_outside(config_, run)).empty();
}

int ClusterRunner::room() const {
  return ahead_ != nullptr ? ahead_->room() : config_.diagnose.jobs.value_or(side_by_side()) - 1;
}

void ClusterRunner::look_with(LogEvidence& logs, bool here) {
  if (here) options_.begin = [&logs](const std::filesystem::path& run_dir) { logs.begin(run_dir); };
  options_.look = [&logs](const std::filesystem::path& run_dir, schedule::RunResult& result) {
    logs.look(run_dir, result);
  };
}

void ClusterRunner::set_aside(const std::vector<const schedule::Schedule*>& schedules, const schedule::Decides& decides,
                              std::vector<Result<schedule::RunResult>>& results) {
  bool decided = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!decided) {
      decided = results[i] && decides(i, *results[i]);
      continue;
    }
    if (results[i] && !results[i]->stopped) give(*schedules[i], *std::move(results[i]));
    results[i] = replay::stopped_run();
  }
}

int ClusterRunner::made_for_nothing() const {
  int runs = forgotten_;
  for (const auto& [schedule, left] : given_)
    for (const Given& given : left) runs += given.guessed ? 1 : 0;
  return runs;
}

std::size_t ClusterRunner::unused() const {
  std::size_t runs = 0;
  for (const auto& [schedule, left] : recorded_) runs += left.size();
  return runs;
}

const schedule::RunResult* ClusterRunner::reproducing(const schedule::Schedule& schedule) const {
  const auto known = reproducing_.find(schedule::fingerprint(schedule));
  return known == reproducing_.end() ? nullptr : &known->second;
}

void ClusterRunner::remember(const schedule::Schedule& schedule, schedule::RunResult& result) {
  if (result.verdict != schedule::Verdict::reproduced) return;
  std::string key = schedule::fingerprint(schedule);
  if (reproducing_.contains(key)) return;
  // Take the trace out, so that the copy that is kept does not contain it.
  trace::Trace trace = std::exchange(result.trace, {});
  reproducing_.emplace(std::move(key), result);
  result.trace = std::move(trace);
}

Result<void> ClusterRunner::decide(int jobs) {
  jobs_.push_back({handed_out_, jobs});
  return store_.record_jobs(jobs_);
}

void ClusterRunner::give_guessed(const schedule::Schedule& schedule, schedule::RunResult result) {
  const std::string fingerprint = schedule::fingerprint(schedule);
  if (store_.has_report()) result.trace = {};
  given_[fingerprint].push_back({std::move(result), true, store_.has_report()});
  if (store_.has_report()) return;
  guessed_.push_back(fingerprint);
  if (guessed_.size() <= kMostGuessed) return;
  std::deque<Given>& oldest = given_[guessed_.front()];
  guessed_.pop_front();
  const auto forgotten = std::find_if(oldest.begin(), oldest.end(), [](const Given& given) { return given.guessed; });
  if (forgotten == oldest.end()) return;  // the search has already requested this run
  oldest.erase(forgotten);
  ++forgotten_;
}

std::vector<schedule::Schedule> ClusterRunner::to_make_ahead(std::size_t most) {
  std::map<std::string, std::size_t> known;
  for (const auto& [fingerprint, left] : recorded_) known[fingerprint] += left.size();
  for (const auto& [fingerprint, left] : given_) known[fingerprint] += left.size();
  std::vector<schedule::Schedule> next = std::exchange(expected_, {});
  std::erase_if(next, [&](const schedule::Schedule& schedule) {
    const auto left = known.find(schedule::fingerprint(schedule));
    return left != known.end() && left->second > 0 && left->second-- > 0;
  });
  if (next.size() > most) next.resize(most);
  return next;
}

std::vector<Result<replay::Run>> ClusterRunner::run_here(const std::vector<const schedule::Schedule*>& todo,
                                                         const schedule::Decides& decides) {
  std::vector<std::optional<Result<replay::Run>>> made(todo.size());
  std::vector<std::size_t> left(todo.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  int most = config_.diagnose.jobs ? static_cast<int>(todo.size()) : std::max(1, side_by_side());
  const auto fitting = static_cast<std::size_t>(config_.diagnose.jobs.value_or(most));
  while (!left.empty()) {
    const auto busy = static_cast<std::size_t>(most);
    const bool overlap = !decides && may_overlap() && left.size() > busy && repeats(*todo[left[0]]) > most;
    const std::size_t now = overlap ? left.size() : std::min(left.size(), busy);
    std::vector<const schedule::Schedule*> batch;
    for (std::size_t i = 0; i < now; ++i) batch.push_back(todo[left[i]]);
    const std::size_t unused = overlap ? (busy - now % busy) % busy : fitting - std::min(fitting, now);
    const std::vector<schedule::Schedule> ahead = to_make_ahead(unused);
    for (const schedule::Schedule& schedule : ahead) batch.push_back(&schedule);
    options_.number = next_number_;
    next_number_ += static_cast<int>(batch.size());
    options_.check = {};
    if (!config_.diagnose.jobs && batch.size() > 1)
      options_.check = [this](replay::Run& run, const schedule::Schedule& schedule) {
        run.disturbed = range_.outside(run.load, !schedule.faults.empty());
      };
    const schedule::Decides decides_batch =
        decides ? [&](std::size_t i, const schedule::RunResult& result) { return i < now && decides(left[i], result); }
                : schedule::Decides();
    // While the measurement is postponed, the survey runs together with the first trial. Wait for this trial, however
    // long it takes, because the search almost certainly requests it next.
    const std::size_t may_stop = to_measure_ ? 0 : ahead.size();
    replay::RunOptions options = options_;
    options.wait_at_most_ns = wait_at_most_ns_;
    options.waiting = {.workload_ns = range_.workload_ns, .start_ns = range_.ready_ns, .begin = {}};
    std::vector<Result<replay::Run>> runs =
        replay::run_side_by_side(store_, config_, batch, options, decides_batch, may_stop, overlap ? busy : 0);
    for (const Result<replay::Run>& run : runs)
      if (run) compare_paths(*run);
    if (to_measure_ && batch.size() > 1) note_proof(batch, runs);
    for (std::size_t i = now; i < runs.size(); ++i)
      if (runs[i] && !runs[i]->result.stopped && runs[i]->disturbed.empty())
        give_guessed(ahead[i - now], std::move(runs[i]->result));
    std::vector<std::size_t> again;
    std::size_t decided = todo.size();  // index of the first run that decides
    for (std::size_t i = 0; i < now; ++i) {
      if (runs[i] && decides && decides(left[i], runs[i]->result)) decided = std::min(decided, left[i]);
      if (runs[i] && !runs[i]->disturbed.empty()) {
        log::debug("run {}: {}", runs[i]->result.number, runs[i]->result.reason);
        again.push_back(left[i]);
      } else {
        made[left[i]] = std::move(runs[i]);
      }
    }
    if (!again.empty() && overlap) {
      apart_ = false;
      log::info(
          "parallel runs: {} from now on, also while runs wait ({} of {} runs were slower than the control runs "
          "and are made again)",
          most, again.size(), now);
    } else if (!again.empty()) {
      most = replay::fewer_runs(most);
      log::info("parallel runs: {} from now on ({} of {} runs were slower than the control runs and are made again)",
                most, again.size(), now);
      if (const Result<void> kept = decide(most); !kept) log::warning("{}", kept.error().message);
    }
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(now));
    left.insert(left.begin(), again.begin(), again.end());
    std::erase_if(left, [&](std::size_t i) {
      if (i <= decided) return false;
      made[i] = replay::Run();
      (*made[i])->result = replay::stopped_run();
      return true;
    });
  }
  std::vector<Result<replay::Run>> all;
  for (std::optional<Result<replay::Run>>& run : made) all.push_back(*std::move(run));
  return all;
}

std::vector<Result<replay::Run>> ClusterRunner::run_elsewhere(const std::vector<const schedule::Schedule*>& todo) {
  std::vector<Result<replay::Run>> made;
  options_.number = next_number_;
  next_number_ += static_cast<int>(todo.size());
  if (todo.empty()) return made;
  ahead_->expect(to_make_ahead(expected_.size()));
  Result<std::vector<engine::Done>> done = ahead_->make(todo);
  for (std::size_t i = 0; i < todo.size(); ++i)
    made.push_back(done ? take_in((*done)[i], options_.number + static_cast<int>(i), *todo[i])
                        : Result<replay::Run>(Unexpected(Error(done.error()))));
  return made;
}

Result<replay::Run> ClusterRunner::take_in(const engine::Done& done, int number, const schedule::Schedule& schedule) {
  ROSE_TRY(const std::filesystem::path run_dir, store_.next(number));
  Result<replay::Run> run = done.open(run_dir);
  if (!run) {
    store_.abandoned(run_dir);
    return run;
  }
  run->result.number = number;
  run->result.directory = run_dir;
  if (options_.look) options_.look(run_dir, run->result);
  ROSE_CHECK(store_.done(*run, schedule));
  return run;
}

std::optional<schedule::RunResult> ClusterRunner::next_recorded(const schedule::Schedule& schedule) {
  if (const auto given = given_.find(schedule::fingerprint(schedule));
      given != given_.end() && !given->second.empty()) {
    Given next = std::move(given->second.front());
    given->second.pop_front();
    remember(schedule, next.result);
    if (next.recorded) next.result.trace = store_.recorded_trace(next.result.number);
    return std::move(next.result);
  }
  const auto found = recorded_.find(schedule::fingerprint(schedule));
  if (found == recorded_.end() || found->second.empty()) return std::nullopt;
  schedule::RunResult result = std::move(found->second.front());
  found->second.pop_front();
  remember(schedule, result);
  recorded_seconds_ += result.seconds;
  result.trace = store_.recorded_trace(result.number);
  return result;
}

}  // namespace rose::cli
