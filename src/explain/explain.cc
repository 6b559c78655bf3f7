#include "explain/explain.h"
#include "explain/function_names.h"
#include "explain/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace rose::explain {
namespace {

std::string in_words(const Input& input, std::uint32_t id) {
  const Kind& kind = input.kinds[id];
  return kind.what == StepKind::message
             ? fmt::format("logs '{}'", input.message ? input.message(kind.message) : kind.words)
             : kind.words;
}

std::vector<DifferenceText> difference_texts(const Input& input, const Comparison& comparison) {
  std::vector<DifferenceText> out;
  for (const Difference& d : comparison.differences) {
    if (out.size() == kMostDifferences) break;
    const Kind& kind = input.kinds[d.kind];
    DifferenceText one;
    one.node = kind.node;
    one.words = in_words(input, d.kind);
    if (d.next != kNoKind) one.words += ", then " + input.kinds[d.next].words;
    one.missing = d.missing;
    one.clean = d.clean;
    one.only_bug = d.only_bug;
    one.failing = d.failing;
    one.sound = d.sound;
    one.near = d.near;
    one.weight = d.weight;
    one.after_ns = d.after_ns;
    one.callee = kind.callee;
    out.push_back(std::move(one));
  }
  for (const Swapped& swap : comparison.orders) {
    DifferenceText one;
    one.node = input.kinds[swap.late].node;
    one.words = order_words(input, swap);
    one.clean = true;
    one.only_bug = swap.only_bug;
    one.failing = 1;
    one.near = swap.only_bug ? 0 : 1;
    one.weight = swap.weight;
    one.after_ns = swap.after_ns;
    out.push_back(std::move(one));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const DifferenceText& a, const DifferenceText& b) { return a.weight > b.weight; });
  return out;
}

void tell_limits(const Input& input, const Comparison& comparison, Explanation& out) {
  out.limits.insert(out.limits.end(), input.unseen.begin(), input.unseen.end());
  out.limits.insert(out.limits.end(), input.limits.begin(), input.limits.end());
  if (!comparison.enough)
    out.limits.push_back(
        fmt::format("{} failing and {} correct runs are too few to compare: at least 2 of each are needed", out.failing,
                    out.sound));
  else if (comparison.none())
    out.limits.push_back(
        comparison.chance > kMostChance
            ? fmt::format("the differences may be chance: {} kinds of steps vary even among failing runs or among "
                          "correct runs, and with {} failing and {} correct runs noise alone causes such a difference "
                          "in {:.0f} of 100 cases; more runs (--runs) show more",
                          comparison.noisy, out.failing, out.sound, 100 * comparison.chance)
            : "failing and correct runs do not differ in anything that was watched, except in what also varies among "
              "failing runs or among correct runs");
  if (comparison.unsure > 0)
    out.limits.push_back(fmt::format(
        "{} function{} entered too often to be watched all the time: whether runs differ in {} is not known",
        comparison.unsure, comparison.unsure == 1 ? " was" : "s were", comparison.unsure == 1 ? "it" : "them"));
  std::set<std::string> talkative;
  for (const Run& run : input.runs) talkative.insert(run.talkative.begin(), run.talkative.end());
  for (const std::string& node : talkative)
    out.limits.push_back(fmt::format(
        "{} exchanged more messages than are examined: whether runs differ in its messages is not known", node));
  const auto cut_short =
      std::count_if(input.runs.begin(), input.runs.end(), [](const Run& run) { return run.cut_short; });
  if (cut_short > 0)
    out.limits.push_back(fmt::format("of {} run{} only the first {} events were compared", cut_short,
                                     cut_short == 1 ? "" : "s", kMostSteps));
  const auto by_time = std::count_if(input.runs.begin(), input.runs.end(),
                                     [](const Run& run) { return run.group == Group::sound && !run.found_cut; });
  if (by_time > 0)
    out.limits.push_back(
        fmt::format("in {} of {} correct runs the step before the fault was not found: they are compared from about "
                    "the same time on",
                    by_time, out.sound));
  for (const schedule::FaultOutcome& fault : input.story.faults) {
    if (!fault.fired) continue;
    const schedule::Fault* planned = input.schedule.find(fault.id);
    const bool cut = planned != nullptr && planned->kind == schedule::FaultKind::partition;
    if (fault.stacks.empty())
      out.limits.push_back(cut ? fmt::format("no thread was in a call on a connection that '{}' partitions, so no "
                                             "stack shows where it took effect",
                                             fault.id)
                               : fmt::format("no stack shows where '{}' took effect", fault.id));
    for (const schedule::Stack& stack : fault.stacks)
      if (!stack.incomplete.empty()) out.limits.push_back(fmt::format("stack of '{}': {}", fault.id, stack.incomplete));
  }
  std::vector<std::string> once;
  for (std::string& limit : out.limits)
    if (std::find(once.begin(), once.end(), limit) == once.end()) once.push_back(std::move(limit));
  out.limits = std::move(once);
}

}  // namespace

std::string order_words(const Input& input, const Swapped& swap) {
  const std::string& node = input.kinds[swap.early].node;
  return fmt::format("{} only after {}{}", in_words(input, swap.late),
                     node == input.kinds[swap.late].node ? "" : node + ": ", in_words(input, swap.early));
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::explained: return "explained";
    case Verdict::nothing_found: return "nothing-found";
    case Verdict::not_reproduced: return "not-reproduced";
    case Verdict::inconclusive: return "inconclusive";
  }
  return "inconclusive";
}

namespace {

// True if the thread of a Node.js process was doing what rose's agent had asked for, such as reading the scripts.
bool is_in_agent(const schedule::Stack& stack) {
  return std::any_of(stack.frames.begin(), stack.frames.end(),
                     [](const schedule::Frame& frame) { return frame.function.starts_with("v8_inspector::"); });
}

// Adds to `out` the stacks of threads that are in a function of the application. If there are none, adds one of the
// other stacks.
void tell_stacks(const schedule::FaultOutcome& outcome, std::vector<Explanation::StackOf>& out) {
  const std::size_t had = out.size();
  for (const schedule::Stack& stack : outcome.stacks)
    if (in_application(stack)) out.push_back({outcome.id, stack});
  if (out.size() == had)
    if (const auto other = std::find_if_not(outcome.stacks.begin(), outcome.stacks.end(), is_in_agent);
        other != outcome.stacks.end())
      out.push_back({outcome.id, *other});
  if (out.size() > had) out.back().others = outcome.stacks.size() - (out.size() - had);
}

// Chance may decide which node takes over. Therefore nodes that may replace each other are compared as one node if no
// single node behaves differently in failing and in correct runs, or if all such differences also occur in runs with
// the fault but without the bug.
Comparison compare_all(Input& input, Merged& merged) {
  std::vector<Run>& runs = input.runs;
  doubt_exchanges(runs, input.kinds);
  doubt_lookups(runs, input.kinds);
  merged = merge_nodes(runs, input.kinds, input.schedule);
  align(runs, input.kinds, merged);
  Comparison comparison = compare(runs, input.kinds, merged);
  if (!merged.none()) return comparison;
  comparison.orders = swapped(runs, input.kinds, input.schedule);
  const bool harmless = std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.group == Group::near; });
  if (!comparison.enough || (!comparison.none() && (!harmless || of_bug_alone(comparison.differences))))
    return comparison;
  Merged whichever = merge_nodes(runs, input.kinds, input.schedule, true);
  Comparison other = compare(runs, input.kinds, whichever);
  // This is the second attempt to find a difference, so the limit is halved.
  if (other.none() || other.chance > kMostChance / 2 || (!comparison.none() && !of_bug_alone(other.differences)))
    return comparison;
  merged = std::move(whichever);
  return other;
}

// See Explanation::killed. A function that is entered again after the restart is left out: if it then does not make a
// call, this may be its own decision.
std::set<std::pair<std::string, std::string>> killed_functions(const Input& input) {
  // number of failing runs in which the function was entered before the crash
  std::map<std::pair<std::string, std::string>, std::size_t> ended;
  std::set<std::pair<std::string, std::string>> again;
  std::size_t failing = 0;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    ++failing;
    std::map<std::string, std::int64_t> crashes;  // time of the last crash, by node
    for (const schedule::FaultOutcome* fault : fired(run))
      if (const schedule::Fault* planned = input.schedule.find(fault->id);
          planned != nullptr && planned->kind == schedule::FaultKind::crash)
        crashes[fault->node] = run.zero_ns + fault->fired_ns;
    std::set<std::uint32_t> seen_before, seen_after = run.let_go;
    for (const Step& step : run.steps) {
      const Kind& kind = input.kinds[step.kind];
      if (kind.what != StepKind::function) continue;
      if (const auto crash = crashes.find(kind.node); crash != crashes.end())
        (step.ts_ns > crash->second ? seen_after : seen_before).insert(step.kind);
    }
    for (const std::uint32_t id : seen_before) ++ended[{input.kinds[id].node, key_of(input.kinds[id].function)}];
    for (const std::uint32_t id : seen_after) again.emplace(input.kinds[id].node, key_of(input.kinds[id].function));
  }
  std::set<std::pair<std::string, std::string>> out;
  for (const auto& [function, runs] : ended)
    if (runs == failing && !again.contains(function)) out.insert(function);
  return out;
}

}  // namespace

bool needs_more_runs(Input& input) {
  if (std::none_of(input.runs.begin(), input.runs.end(),
                   [](const Run& run) { return run.group == Group::failing && !fired(run).empty(); }))
    return false;
  Merged merged;
  const Comparison comparison = compare_all(input, merged);
  if (!comparison.enough || comparison.unproven) return comparison.enough;
  return comparison.differences.empty() && (comparison.hidden || comparison.chance > kMostChance / 2);
}

Explanation explain(Input& input) {
  Explanation out;
  for (const Run& run : input.runs) {
    switch (run.group) {
      case Group::failing: ++out.failing; break;
      case Group::sound: ++out.sound; break;
      case Group::near: ++out.near; break;
      case Group::shorter: ++out.shorter; break;
    }
  }
  const ValueSorts sorts(input.runs, input.questions.size());
  add_values(input.runs, input.questions, sorts, input.kinds);
  Merged merged;
  const Comparison comparison = compare_all(input, merged);
  out.killed = killed_functions(input);
  out.aftermaths = aftermaths_of(input);
  merged.apply(input.runs);
  out.chance = comparison.chance;
  out.differences = difference_texts(input, comparison);
  out.suspects = suspects_of(input, comparison);
  out.path = path_of(input);
  const Run& story = input.runs[input.story_run];
  out.values = value_tables(input.runs, input.questions, sorts, input.kinds, comparison, story, !merged.none());
  out.exchanges = exchange_tables(input.runs);
  const auto faults = fired(story);
  if (!faults.empty()) out.fault = faults.front()->id;
  for (const schedule::FaultOutcome* outcome : faults) {
    const schedule::Fault* fault = input.schedule.find(outcome->id);
    out.faults.push_back(
        fmt::format("{}: {}", outcome->id, fault != nullptr ? schedule::in_words(*fault) : outcome->detail));
    tell_stacks(*outcome, out.stacks);
  }
  out.symptom = input.oracle_output;
  tell_limits(input, comparison, out);
  out.recorded = recorded_divergences(input, out.limits);
  if (!merged.none())
    out.limits.emplace_back(
        "the fault or its effects are on different nodes in different runs, so steps are compared regardless of the "
        "node");
  if (faults.empty()) {
    // A run without a fault has no cause to which a difference could be attributed.
    out.suspects.clear();
    out.differences.clear();
    out.recorded.clear();
    out.exchanges.clear();
    out.verdict = Verdict::nothing_found;
    out.reason = "no fault fired in the runs that were compared";
    return out;
  }
  out.story = story_of(input, comparison);
  const std::string runs =
      fmt::format("{} failing and {} correct runs{}", out.failing, out.sound,
                  out.near > 0 ? fmt::format(", {} with the fault but without the bug", out.near) : "");
  if (comparison.none()) {
    // Without a difference, a function is not suspect for having been entered, or for having been executing when the
    // fault hit.
    out.suspects.clear();
    for (ExchangeTable& table : out.exchanges) table.differs.clear();
    out.verdict = Verdict::nothing_found;
    out.reason = fmt::format("found nothing in which failing runs differ from correct ones beyond noise ({}){}", runs,
                             out.stacks.empty() ? "" : "; only the location where the fault took effect is known");
    return out;
  }
  out.verdict = Verdict::explained;
  out.reason = fmt::format("kinds of steps that distinguish failing runs from correct ones: {} ({})",
                           out.differences.size(), runs);
  return out;
}

}  // namespace rose::explain
