#include "diagnose/lab.h"

#include <algorithm>
#include <cmath>

#include "diagnose/feedback.h"
#include "diagnose/move.h"

namespace rose::diagnose {
namespace {

std::string ids_of(const schedule::Schedule& schedule) {
  std::string ids;
  for (const schedule::Fault& fault : schedule.faults) ids += fault.id + " ";
  return ids;
}

}  // namespace

void note_hit(Tried& tried, const schedule::RunResult& result) {
  tried.brought_back.insert(result.messages_seen.begin(), result.messages_seen.end());
  tried.brought_back.merge(signs_of(result.trace));
  tried.traced = tried.traced || !result.trace.events.empty();
  tried.longest_hit_ns = std::max(tried.longest_hit_ns, result.workload_end_ns.value_or(0));
}

Lab::Entry Lab::enter(const schedule::Schedule& schedule, int of_level, std::string why) {
  const auto [known, fresh] = known_.try_emplace(schedule::fingerprint(schedule), d_.tried.size());
  if (fresh) d_.tried.push_back({schedule, of_level, {}, std::move(why)});
  return {known->second, fresh || not_run_.contains(known->second)};
}

Result<std::vector<Lab::Made>> Lab::run(const std::vector<std::size_t>& tried, const std::string& doing,
                                        const Decides& decides, std::int64_t longest_ns) {
  report_progress(doing);
  std::vector<const schedule::Schedule*> schedules;
  for (const std::size_t index : tried) schedules.push_back(&d_.tried[index].schedule);
  runner_.wait_at_most(longest_ns);
  std::vector<Result<schedule::RunResult>> results = runner_.run_all(schedules, decides);
  std::vector<Made> all;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    ROSE_TRY(Made made, take(tried[i], std::move(results[i])));
    all.push_back(std::move(made));
  }
  return all;
}

Result<std::vector<Lab::Made>> Lab::run_judged(const std::vector<std::size_t>& tried, const std::string& doing,
                                               const std::set<std::size_t>& once, const Decides& decides) {
  ROSE_TRY(std::vector<Made> all, run(tried, doing, decides));
  // If a run reproduced the bug, the caller examines it first; inconclusive runs can be repeated later.
  if (std::any_of(all.begin(), all.end(),
                  [](const Made& made) { return made.result.oracle == schedule::OracleAnswer::hit; }))
    return all;
  std::vector<std::size_t> unclear;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].armed && all[i].result.oracle == schedule::OracleAnswer::unknown && !once.contains(tried[i]))
      unclear.push_back(i);
  if (static_cast<int>(unclear.size()) > left()) unclear.resize(static_cast<std::size_t>(std::max(0, left())));
  if (unclear.empty()) return all;
  std::vector<std::size_t> again;
  for (const std::size_t i : unclear) again.push_back(tried[i]);
  ROSE_TRY(std::vector<Made> second, run(again, doing));
  for (std::size_t i = 0; i < unclear.size(); ++i) all[unclear[i]] = std::move(second[i]);
  return all;
}

// A schedule may refer to something that the test deployment lacks, for example a function that its build inlined. The
// error that results ends this trial, not the diagnosis, unless no schedule at all can be armed.
Result<Lab::Made> Lab::take(std::size_t tried, Result<schedule::RunResult> result) {
  Tried& entry = d_.tried[tried];
  not_run_.erase(tried);
  if (result && result->stopped) {
    if (entry.tally.runs() == 0) not_run_.insert(tried);
    return Made{true, *std::move(result)};
  }
  if (!result) {
    const ErrorKind kind = result.error().kind;
    const bool unarmable = kind == ErrorKind::input || kind == ErrorKind::environment;
    if (!unarmable || entry.schedule.faults.empty() || (!armed_any_ && ++unarmable_in_a_row_ >= kMostUnarmable))
      return Unexpected(std::move(result).error());
    entry.tally.add(schedule::Verdict::inconclusive);
    if (entry.note.find(result.error().message) == std::string::npos)
      entry.note += fmt::format("; {}", result.error().message);
    // Warn if the machine lacks something, because the search leaves out the trials that need it and may find less.
    std::vector<std::string>& warnings = d_.plan.warnings;
    const std::string warning =
        fmt::format("runs that cannot be made are left out of the search: {}", result.error().message);
    if (kind == ErrorKind::environment && std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
      warnings.push_back(warning);
    Made made;
    made.armed = false;
    made.result.reason = result.error().message;
    return made;
  }
  ++d_.runs;
  // A run with a doubt (its workload failed, or its disk was full) is no evidence either way.
  if (!result->doubt.empty()) result->oracle = schedule::OracleAnswer::unknown;
  armed_any_ = armed_any_ || !entry.schedule.faults.empty();
  for (auto* sum : {&seconds_[ids_of(entry.schedule)], &all_seconds_}) {
    sum->first += result->seconds;
    ++sum->second;
  }
  // Every run in which no fault had an effect counts as a control run, whatever its purpose was.
  if (!schedule::any_effective(*result) && result->oracle != schedule::OracleAnswer::unknown) {
    ++d_.control_runs;
    d_.without_faults.insert(result->messages_seen.begin(), result->messages_seen.end());
    d_.usual_signs.merge(signs_of(result->trace));
    if (result->oracle == schedule::OracleAnswer::hit && d_.control_hits++ == 0)
      d_.plan.warnings.push_back(fmt::format(
          "the oracle found the bug in a run in which no fault had an effect ({}): what it looks for also happens "
          "without faults; let it examine only this run's files, wait until the system has settled, and look for the "
          "symptom itself (configs/oracles.md)",
          entry.schedule.faults.empty() ? "there was none" : short_words(entry.schedule)));
  }
  entry.tally.add(result->verdict);
  if (result->oracle == schedule::OracleAnswer::hit) note_hit(entry, *result);
  return Made{true, *std::move(result)};
}

double Lab::cost(const schedule::Schedule& schedule) const {
  const auto known = seconds_.find(ids_of(schedule));
  if (known == seconds_.end() || all_seconds_.second == 0 || all_seconds_.first <= 0) return 1;
  const double mean = all_seconds_.first / all_seconds_.second;
  return std::max(1.0, std::round(2 * known->second.first / known->second.second / mean) / 2);
}

void Lab::report_progress(const std::string& doing) {
  if (!progress_) return;
  Progress progress;
  progress.level = level;
  progress.schedules = d_.schedules;
  progress.runs = d_.runs;
  progress.runs_left = left();
  if (runs_until > 0) progress.runs_left = std::max(0, std::min(progress.runs_left, runs_until - d_.runs));
  if (d_.first) progress.first = &d_.tried[*d_.first];
  if (found) progress.found = &d_;
  progress.warnings = &d_.plan.warnings;
  progress.best_rate = best_rate;
  progress.testing_rate = testing_rate;
  if (all_seconds_.second > 0)
    progress.seconds_left = all_seconds_.first / all_seconds_.second * progress.runs_left / jobs();
  progress.doing = doing;
  progress_(progress);
}

}  // namespace rose::diagnose
