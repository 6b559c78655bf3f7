#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>

namespace rose::explain {
namespace {

std::vector<Told> told(const Input& input, const Comparison& comparison) {
  std::vector<Told> out;
  for (const Difference& d : comparison.differences) {
    if (out.size() == kMostTold) break;
    const Kind& kind = input.kinds[d.kind];
    Told one;
    one.node = kind.node;
    one.words = kind.what == StepKind::message ? fmt::format("logs '{}'", input.message ? input.message(kind.message) : kind.words) : kind.words;
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
  return out;
}

void tell_limits(const Input& input, const Comparison& comparison, Explanation& out) {
  out.limits.insert(out.limits.end(), input.unseen.begin(), input.unseen.end());
  out.limits.insert(out.limits.end(), input.limits.begin(), input.limits.end());
  if (!comparison.enough)
    out.limits.push_back(fmt::format("{} failing and {} sound runs are too few to compare: at least 2 of each are needed", out.failing, out.sound));
  else if (comparison.differences.empty())
    out.limits.push_back(comparison.chance > kMostChance
                             ? fmt::format("what differs may be chance: {} kinds of steps vary among equal runs, and with {} failing and {} sound runs noise alone "
                                           "makes such a difference in {:.0f} of 100 cases; more runs (--runs) tell more",
                                           comparison.noisy, out.failing, out.sound, 100 * comparison.chance)
                             : "failing and sound runs differ in nothing that was watched, beyond what differs among equal runs");
  if (comparison.unsure > 0)
    out.limits.push_back(fmt::format("{} function{} entered too often to be watched all the time: whether runs differ in {} is not known", comparison.unsure,
                                     comparison.unsure == 1 ? " was" : "s were", comparison.unsure == 1 ? "it" : "them"));
  const auto cut_short = std::count_if(input.runs.begin(), input.runs.end(), [](const Run& run) { return run.cut_short; });
  if (cut_short > 0) out.limits.push_back(fmt::format("of {} runs only the first {} events were compared", cut_short, kMostSteps));
  const auto by_time = std::count_if(input.runs.begin(), input.runs.end(), [](const Run& run) { return run.group == Group::sound && !run.found_cut; });
  if (by_time > 0)
    out.limits.push_back(fmt::format("in {} of {} sound runs the step before the fault was not found: they are compared from about the same time on", by_time, out.sound));
  for (const schedule::FaultOutcome& fault : input.story.faults) {
    if (!fault.fired) continue;
    if (fault.stacks.empty()) out.limits.push_back(fmt::format("no stack is known of where '{}' arrived", fault.id));
    for (const schedule::Stack& stack : fault.stacks)
      if (!stack.incomplete.empty()) out.limits.push_back(fmt::format("stack of '{}': {}", fault.id, stack.incomplete));
  }
  std::vector<std::string> once;
  for (std::string& limit : out.limits)
    if (std::find(once.begin(), once.end(), limit) == once.end()) once.push_back(std::move(limit));
  out.limits = std::move(once);
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::explained: return "explained";
    case Verdict::nothing_found: return "nothing-found";
    case Verdict::not_reproduced: return "not-reproduced";
    case Verdict::inconclusive: return "inconclusive";
  }
  return "inconclusive";
}

Explanation explain(Input& input) {
  Explanation out;
  for (const Run& run : input.runs) {
    switch (run.group) {
      case Group::failing: ++out.failing; break;
      case Group::sound: ++out.sound; break;
      case Group::near: ++out.near; break;
    }
  }
  const ValueSorts sorts(input.runs, input.questions.size());
  add_values(input.runs, input.questions, sorts, input.kinds);
  const bool merged = merge_nodes(input.runs, input.kinds);
  align(input.runs, input.kinds);
  const Comparison comparison = compare(input.runs, input.kinds);
  out.chance = comparison.chance;
  out.differences = told(input, comparison);
  out.suspects = suspects_of(input, comparison);
  const Run& story = input.runs[input.story_run];
  out.values = value_tables(input.runs, input.questions, sorts, input.kinds, comparison, story, merged);
  const auto faults = fired(story);
  if (!faults.empty()) out.fault = faults.front()->id;
  for (const schedule::FaultOutcome* outcome : faults) {
    const schedule::Fault* fault = input.schedule.find(outcome->id);
    out.faults.push_back(fmt::format("{}: {}", outcome->id, fault != nullptr ? schedule::in_words(*fault) : outcome->detail));
    for (const schedule::Stack& stack : outcome->stacks) out.stacks.push_back({outcome->id, stack});
  }
  out.symptom = input.oracle_said;
  tell_limits(input, comparison, out);
  if (merged) out.limits.emplace_back("the fault hits other nodes in other runs: steps are compared whichever node makes them");
  if (faults.empty()) {
    // Without a fault there is nothing that a difference could come from.
    out.suspects.clear();
    out.differences.clear();
    out.verdict = Verdict::nothing_found;
    out.reason = "no fault fired in the runs that were compared";
    return out;
  }
  out.story = story_of(input, comparison);
  const bool differ = !out.differences.empty();
  if (out.stacks.empty() && !differ) {
    out.suspects.clear();  // what was entered before the fault alone accuses nobody
    out.verdict = Verdict::nothing_found;
    out.reason = fmt::format("the bug showed in {} runs, and nothing was found by which they differ from sound ones", out.failing);
    return out;
  }
  out.verdict = Verdict::explained;
  const std::string runs = fmt::format("{} failing and {} sound runs{}", out.failing, out.sound, out.near > 0 ? fmt::format(", {} with the fault but without the bug", out.near) : "");
  out.reason = differ ? fmt::format("kinds of steps that tell failing runs from sound ones: {} ({})", out.differences.size(), runs)
                      : fmt::format("found nothing by which failing runs differ from sound ones beyond noise ({}); only where the fault arrived is known", runs);
  return out;
}

}  // namespace rose::explain
