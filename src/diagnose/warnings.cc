#include "diagnose/warnings.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "evidence/forms.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostLooked = 8;       // at most this many candidates are examined, most likely first
constexpr std::size_t kMostNamed = 3;        // names listed in one warning
constexpr std::size_t kMostKindsBefore = 3;  // kinds of events before one fault that are looked for

// "a, b and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNamed);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string what(const Candidate& c) {
  if (c.kind != FaultKind::syscall) return fmt::format("{} of {}", schedule::kind_name(c.kind), c.node);
  const std::string on = c.path.empty() ? c.peer : c.path;
  return fmt::format("{}({}) on {}", c.syscall, on, c.node);
}

// The most likely candidates, without symptoms, guesses and everyday errors.
std::vector<const Candidate*> likeliest(const Plan& plan) {
  std::vector<const Candidate*> all = by_weight(plan);
  std::erase_if(all, [](const Candidate* c) { return c->symptom || c->ordinariness > 1 || c->assumed; });
  if (all.size() > kMostLooked) all.resize(kMostLooked);
  return all;
}

// Warns of faults that occurred so late in the dump that the workload of the test deployment ends earlier. Only a dump
// that contains the start of its workload can be compared.
void warn_of_late_faults(const Plan& plan, std::int64_t workload_ns, std::vector<std::string>& warnings) {
  if (plan.workload_ts == 0 || workload_ns <= 0) return;
  std::vector<std::string> late;
  std::int64_t last = 0;
  for (const Candidate* c : likeliest(plan)) {
    const std::int64_t since = c->first_ts - plan.workload_ts;
    if (since <= workload_ns + kSecond / 2) continue;
    late.push_back(fmt::format("{} at {}", what(*c), format_duration(rounded(since))));
    last = std::max(last, since);
  }
  if (late.empty()) return;
  warnings.push_back(
      fmt::format("the workload ends {} after it began, but these faults of the dump came later: {}; a fault cannot "
                  "affect operations that are over by then: let the workload run for at least {}",
                  format_duration(rounded(workload_ns)), some_of(late), format_duration(rounded(last + kSecond))));
}

void warn_of_oracle(const profile::WorkloadUse& use, std::vector<std::string>& warnings) {
  if (use.hits == 0) return;
  warnings.push_back(fmt::format(
      "the oracle found the bug in {} of {} runs without faults that the profile was made from, so it will "
      "also find the bug where a fault had nothing to do with it: let it examine only this run's files, wait until the "
      "system has settled, and look for the symptom itself (configs/oracles.md)",
      use.hits, use.runs));
}

void warn_of_idle_end(const config::Config& config, const profile::WorkloadUse& use,
                      std::vector<std::string>& warnings) {
  const std::int64_t idle_ns = use.idle_ms * kMillisecond;
  if (!use.exchanges() || idle_ns < config.trace.network_delay_ns) return;
  warnings.push_back(fmt::format(
      "the workload exchanges nothing with the nodes in its last {} (network_delay is {}): connections are silent then "
      "as if they were cut, and a fault at that time meets no operation; let it go on working until its end",
      format_duration(rounded(idle_ns)), format_duration(config.trace.network_delay_ns)));
}

// Warns of calls that failed in production and are never made in the test deployment.
void warn_of_missing_calls(const World& world, std::vector<std::string>& warnings) {
  // Do not check evidence from logs, because a message may refer to many calls, most of which are never made.
  if (!world.survey.made || !world.inputs->recorded()) return;
  std::vector<std::string> never;
  for (const Candidate* c : likeliest(world.plan)) {
    if (!hits_by_count(c->kind)) continue;
    Fault plain = c->fault;
    plain.when.clear();
    const Answer* answer = world.survey.find({plain.node, {}, visit_condition(plain)});
    if (answer != nullptr && answer->times == 0)
      never.push_back(c->kind == FaultKind::exception ? plain.function + " on " + plain.node : what(*c));
  }
  if (never.empty()) return;
  warnings.push_back(fmt::format(
      "the dump contains failed calls that the nodes never make in a run without faults: {}; they cannot be "
      "made to fail before the workload triggers them: extend the workload, or its initial data",
      some_of(never)));
}

// Warns of events that preceded a process or network fault in the dump and that no node of the test deployment
// produces.
void warn_of_missing_events(const World& world, std::vector<std::string>& warnings) {
  const trace::Trace& usual = world.survey.trace;
  if (!world.contexts || usual.events.empty()) return;
  std::vector<std::string> never;
  const std::vector<const Candidate*> likely = likeliest(world.plan);
  for (const Candidate* c : likely) {
    const auto number = world.node_numbers.find(c->node);
    if (hits_by_count(c->kind) || number == world.node_numbers.end()) continue;
    // Ignore events that follow a fault of the node: they may be its consequences, which no workload can cause.
    std::int64_t until = c->first_ts;
    for (const Candidate* other : likely)
      if (other->node == c->node) until = std::min(until, other->first_ts);
    std::set<std::string> seen;
    for (const ContextEvent& event :
         world.contexts->before(number->second, std::numeric_limits<std::int64_t>::min(), until, 64)) {
      if (!seen.insert(event.key).second) continue;
      if (seen.size() > kMostKindsBefore) break;
      if (std::none_of(usual.events.begin(), usual.events.end(),
                       [&](const trace::Event& control_event) { return meets(usual, control_event, event.condition); }))
        never.push_back(fmt::format("{} of {}", context_words(event.condition), c->node));
    }
  }
  if (never.empty()) return;
  warnings.push_back(fmt::format(
      "before the faults of the dump, the nodes did things that they never do in a run without faults: "
      "{}; faults may therefore hit another moment here: extend the workload until the nodes do the same (a "
      "profile shows what they do)",
      some_of(never)));
}

}  // namespace

std::vector<std::string> warnings_of_plan(const Inputs& inputs, const Plan& plan, std::int64_t workload_ns) {
  std::vector<std::string> warnings;
  const profile::WorkloadUse* use = inputs.profile && inputs.profile->workload ? &*inputs.profile->workload : nullptr;
  if (workload_ns <= 0 && use != nullptr) workload_ns = use->longest_ms * kMillisecond;
  // In logs the start of the workload is only estimated.
  if (inputs.recorded()) warn_of_late_faults(plan, workload_ns, warnings);
  if (use == nullptr) return warnings;
  warn_of_oracle(*use, warnings);
  warn_of_idle_end(*inputs.config, *use, warnings);
  return warnings;
}

std::vector<std::string> warnings_of_survey(const World& world) {
  std::vector<std::string> warnings;
  warn_of_missing_calls(world, warnings);
  warn_of_missing_events(world, warnings);
  return warnings;
}

}  // namespace rose::diagnose
