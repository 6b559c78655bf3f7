// Adds the features of functions that follow from differences between failing and correct runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "explain/evidences.h"
#include "explain/function_names.h"

namespace rose::explain {
namespace {

// Factors for reasons: a difference in what happens in a function, or right after it, counts less than a difference in
// the function's own entry, exception or values.
constexpr double kInside = 0.6, kSuccession = 0.5;
constexpr double kUnknown = 0.5;  // value of `bug-alone` if no run shows what the fault does without the bug
// at most this many ns pass between the moments at which an exception leaves one method and the next
constexpr std::int64_t kOneException = 200'000;

std::string counted(const Difference& d) {
  std::string out =
      fmt::format("{} failing and {} correct runs", of_runs(d.failing, d.failing_runs), of_runs(d.sound, d.sound_runs));
  if (d.near_runs > 0) out += fmt::format(", {} with the fault but without the bug", of_runs(d.near, d.near_runs));
  if (d.by_chance) out += fmt::format(" (p = {:.2g})", *d.by_chance);
  if (d.needless > 0) out += ", but the bug occurs without it if the fault is shorter";
  return out;
}

// A Python traceback contains only the last part of a function's name, and its file: "put" in "/srv/store.py". The
// watched function is then "store.Store.put". Returns the frame's own name unless exactly one watched function matches.
std::string watched_name(const Kinds& kinds, const schedule::Frame& frame) {
  if (!frame.file.ends_with(".py")) return frame.function;
  const std::string module = std::filesystem::path(frame.file).stem().string() + ".", last = "." + frame.function;
  std::set<std::string> found;
  for (std::uint32_t id = 0; id < kinds.size(); ++id)
    if (const std::string& function = kinds[id].function; function.starts_with(module) && function.ends_with(last))
      found.insert(function);
  return found.size() == 1 ? *found.begin() : frame.function;
}

// Uses the stack trace in a message that distinguishes the runs, because the trace shows where the program was.
void from_trace(const Input& input, const Difference& d, double weight, const std::string& runs, Evidences& out) {
  const std::int64_t cut = input.runs[input.story_run].cut_ns;
  const auto line = std::find_if(input.lines.begin(), input.lines.end(), [&](const LogLine& one) {
    return !one.frames.empty() && one.ts_ns > cut && one.kind == input.kinds[d.kind].message &&
           (input.kinds[d.kind].node.empty() || one.node == input.kinds[d.kind].node);
  });
  if (line == input.lines.end()) return;
  std::size_t told = 0;
  for (const schedule::Frame& frame : line->frames) {
    if (is_library(frame)) continue;
    if (told++ == kMostFrames) break;
    Evidence& evidence = out[watched_name(input.kinds, frame)];
    if (evidence.file.empty()) evidence.file = frame.file, evidence.line = frame.line;
    evidence.features.raise(Feature::traced, weight);
    evidence.tell(weight, line->node,
                  fmt::format("{} a stack trace that is logged in {} ({})", told == 1 ? "the innermost of" : "in", runs,
                              line->place));
    weight *= kOuter;
  }
}

// For each exception, the outermost of the Java methods that the exception leaves. All work of that method was aborted,
// so it may be half done.
std::set<std::uint32_t> outermost_left(const Input& input) {
  std::set<std::uint32_t> out;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    std::map<std::int32_t, const Step*> last;  // by thread: the last step, if in it an exception left a method
    for (const Step& step : run.steps) {
      const Kind& kind = input.kinds[step.kind];
      if (step.tid == 0 || step.ts_ns <= run.cut_ns || kind.what == StepKind::message) continue;
      const Step*& before = last[step.tid];
      const bool thrown = kind.what == StepKind::thrown;
      if (before != nullptr && !(thrown && step.ts_ns - before->ts_ns < kOneException)) out.insert(before->kind);
      before = thrown ? &step : nullptr;
    }
    for (const auto& [tid, step] : last)
      if (step != nullptr) out.insert(step->kind);
  }
  return out;
}

// If a kill interrupted a function, a step that is missing in the function is missing because of the kill, and is no
// evidence for or against the function.
bool is_cut_short(const Difference& d, bool killed, const Evidence& evidence) {
  return d.missing && killed &&
         (evidence.features[Feature::arrived] > 0 || evidence.features[Feature::interrupted] > 0);
}

// Sets the features of a function from the heaviest difference in its own entry, exception or values.
void describe(const Difference& d, const std::set<std::string>& started, bool killed, const std::string& node,
              Evidence& evidence) {
  if (evidence.reported || d.weight <= evidence.heaviest_of_own || is_cut_short(d, killed, evidence)) return;
  evidence.heaviest_of_own = d.weight;
  Features& f = evidence.features;
  f[Feature::differs] = d.strength;
  f[Feature::bug_alone] = d.only_bug ? 1 : d.clean && d.near_runs == 0 ? kUnknown : 0;
  f[Feature::usual] = node.empty() || started.contains(node) ? d.earlier : 0;
  // A single harmless run is weak evidence, because often only a small difference decides whether the bug occurs.
  const auto near = static_cast<double>(d.near_runs);
  f[Feature::harmless] = d.harmless ? near / (near + 1) : 0;
  f[Feature::by_chance] = d.by_chance.value_or(0);
  f[Feature::dead] = d.missing && killed ? 1 : 0;
}

}  // namespace

void from_differences(const Input& input, const Comparison& comparison, bool known_broken_off, Evidences& out) {
  const bool killed =
      std::any_of(input.schedule.faults.begin(), input.schedule.faults.end(),
                  [](const schedule::Fault& fault) { return fault.kind == schedule::FaultKind::crash; });
  std::set<std::string> started;
  for (const Run& run : input.runs)
    if (run.group == Group::failing)
      for (const schedule::FaultOutcome* fault : fired(run)) {
        const schedule::Fault* planned = input.schedule.find(fault->id);
        if (planned != nullptr && planned->kind == schedule::FaultKind::crash)
          started.insert(fault->node.empty() ? planned->node : fault->node);
      }
  const bool bug_alone = std::any_of(comparison.differences.begin(), comparison.differences.end(),
                                     [](const Difference& d) { return d.only_bug; });
  const std::set<std::uint32_t> outermost = outermost_left(input);
  std::set<std::pair<std::string, std::string>> thrown;  // functions, with their nodes, that exceptions leave
  for (const Difference& d : comparison.differences)
    if (const Kind& kind = input.kinds[d.kind]; kind.what == StepKind::thrown && !d.missing && d.next == kNoKind)
      thrown.emplace(kind.function, kind.node);
  for (const Difference& d : comparison.differences) {
    const Kind& kind = input.kinds[d.kind];
    const std::string runs = counted(d);
    if (d.next != kNoKind) {
      if (kind.what != StepKind::function) continue;
      out[kind.function].tell(
          d.weight * kSuccession, kind.node,
          fmt::format("what its thread does next differs: {} in {}", input.kinds[d.next].words, runs));
      continue;
    }
    // If the message contains a stack trace of the program, the trace shows where the program was.
    if (kind.what == StepKind::message && !d.missing) from_trace(input, d, d.weight, runs, out);
    switch (kind.what) {
      case StepKind::function:
        // If correct runs also enter the function, only earlier, this normally lowers its score. Ignore this difference
        // if the function made a call that an earlier fault made fail, because a later fault then made the function
        // start again.
        if (out[kind.function].at_failed_call && d.earlier > kUnknown && !d.missing) break;
        if (d.clean && !d.missing &&
            (d.only_bug || d.near_runs == 0 || (!bug_alone && !(known_broken_off && d.harmless))))
          out[kind.function].fresh.insert(kind.node);
        if (d.clean && d.missing && !is_cut_short(d, killed, out[kind.function]))
          out[kind.function].lost.insert(kind.node);
        describe(d, started, killed, kind.node, out[kind.function]);
        out[kind.function].tell(d.weight, kind.node, fmt::format("entered after the fault in {}", runs));
        break;
      case StepKind::thrown:
        // If the function only passes on the fault's own exception, the exception is no evidence against it.
        if (out[kind.function].features[Feature::passed_on] == 0) {
          describe(d, started, killed, kind.node, out[kind.function]);
          if (outermost.contains(d.kind) && !d.missing)
            out[kind.function].features.raise(Feature::broken_off, d.weight);
        }
        out[kind.function].tell(d.weight, kind.node,
                                fmt::format("left by {} after the fault in {}",
                                            std::string_view(kind.words).substr(kind.words.rfind(' ') + 1), runs));
        break;
      case StepKind::caught:
        // A function with a `finally` block catches an exception and throws it again, so it does not decide what
        // follows.
        if (thrown.contains({kind.function, kind.node}) || d.missing) break;
        describe(d, started, killed, kind.node, out[kind.function]);
        out[kind.function].features.raise(Feature::caught, d.weight);
        out[kind.function].tell(d.weight, kind.node,
                                fmt::format("catches {} after the fault in {}",
                                            std::string_view(kind.words).substr(8, kind.words.find(" in ") - 8), runs));
        break;
      case StepKind::value:
        if (kind.function.empty()) break;
        // The caller chooses an argument, so the argument is no evidence against the function that gets it.
        if (!input.questions[kind.question].about_argument())
          describe(d, started, killed, kind.node, out[kind.function]);
        out[kind.function].tell(
            d.weight, kind.node,
            fmt::format("{}{} after the fault in {}", d.missing ? "no longer: " : "", kind.words, runs));
        break;
      default:
        if (d.in == kNoKind) break;
        out[input.kinds[d.in].function].features.raise(Feature::inside, d.weight);
        out[input.kinds[d.in].function].tell(
            d.weight * kInside, input.kinds[d.in].node,
            fmt::format("after its entry: {}{} in {}", d.missing ? "no longer " : "", kind.words, runs));
    }
  }
  for (const Swapped& swap : comparison.orders) {
    for (const auto& [id, share] : {std::pair(swap.late, 1.0), std::pair(swap.in, kSuccession)}) {
      if (id == kNoKind || input.kinds[id].what != StepKind::function) continue;
      out[input.kinds[id].function].features.raise(Feature::order, swap.weight * share);
      out[input.kinds[id].function].tell(
          swap.weight * share, input.kinds[id].node,
          fmt::format("in all failing runs, and in no correct one: {}", order_words(input, swap)));
    }
  }
}

}  // namespace rose::explain
