// Finds, on the stack of a failed call, the function that handled the error: the function that made the thread's next
// call, because the functions further in had returned by then. In languages without exceptions, this function
// corresponds to the handler that catches an exception.
#include <algorithm>
#include <map>
#include <set>

#include "explain/explain.h"
#include "explain/function_names.h"
#include "explain/model.h"

namespace rose::explain {
namespace {

std::vector<std::string> functions_of(const schedule::Stack& stack) {
  std::vector<std::string> out;
  for (const schedule::Frame& frame : stack.frames) {
    if (!is_applications(frame)) continue;
    std::string key = key_of(frame.function);
    if (std::find(out.begin(), out.end(), key) != out.end()) continue;
    // The function passed the closure to a library, which may call it several times, so the function counts instead of
    // the closure.
    if (!out.empty() && is_closure_in(out.back(), key)) out.back() = std::move(key);
    else out.push_back(std::move(key));
  }
  return out;
}

// The function that the thread entered next. Empty if the thread first made a system call or left a method by an
// exception, because it is then unknown in which function it was.
std::string entered_next(const Run& run, const Kinds& kinds, std::int32_t tid, std::int64_t at_ns) {
  for (const Step& step : run.steps) {
    if (step.tid != tid || step.ts_ns <= at_ns) continue;
    const Kind& kind = kinds[step.kind];
    if (kind.what == StepKind::function) return kind.function;
    if (kind.what == StepKind::call || kind.what == StepKind::failed_call || kind.what == StepKind::thrown) return {};
  }
  return {};
}

// True if a goroutine made the call. A thread runs several goroutines, one after the other, so the thread's next action
// may be that of another goroutine, even of one with the same functions.
bool of_goroutine(const schedule::Stack& stack) {
  return std::any_of(stack.frames.begin(), stack.frames.end(),
                     [](const schedule::Frame& frame) { return frame.file.ends_with(".go"); });
}

// For a goroutine: the first function that its process enters after the failed call and that correct runs do not enter.
std::string entered_newly(const Run& run, const Kinds& kinds, std::int32_t pid, std::int64_t at_ns,
                          const std::set<std::string>& usual) {
  for (const Step& step : run.steps) {
    const Kind& kind = kinds[step.kind];
    if (step.pid != pid || step.ts_ns <= at_ns || kind.what != StepKind::function) continue;
    if (!usual.contains(key_of(kind.function))) return kind.function;
  }
  return {};
}

}  // namespace

std::vector<Aftermath> aftermaths_of(const Input& input) {
  const std::set<std::string> usual = usual_functions(input, true);
  // by fault and function: the aftermath, and the number of runs in which it occurred
  std::map<std::pair<std::string, std::string>, std::pair<Aftermath, std::size_t>> seen;
  std::size_t failing = 0;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    ++failing;
    for (const schedule::FaultOutcome* fault : fired(run)) {
      const schedule::Fault* planned = input.schedule.find(fault->id);
      if (planned == nullptr) continue;
      // A limit makes calls fail some time after the fault began.
      const bool limit =
          planned->kind == schedule::FaultKind::descriptors || planned->kind == schedule::FaultKind::disk_full;
      if (planned->kind != schedule::FaultKind::syscall && !limit) continue;
      for (const schedule::Stack& stack : fault->stacks) {
        const std::int32_t tid = stack.tid != 0 ? stack.tid : fault->tid;
        const std::int64_t at_ns = run.zero_ns + (limit ? stack.ns : fault->fired_ns);
        Aftermath one{stack.node.empty() ? fault->node : stack.node, functions_of(stack),
                      of_goroutine(stack) && fault->pid != 0 ? entered_newly(run, input.kinds, fault->pid, at_ns, usual)
                                                             : entered_next(run, input.kinds, tid, at_ns)};
        if (one.stack.empty() || one.entered.empty()) continue;
        auto& known = seen[{fault->id, one.entered}];
        ++known.second;
        known.first = std::move(one);
        break;
      }
    }
  }
  std::vector<Aftermath> out;
  for (const auto& [key, known] : seen)
    if (2 * known.second > failing) out.push_back(known.first);
  return out;
}

std::vector<std::string> caller_queries(const Explanation& explanation, std::size_t most) {
  std::vector<std::string> out;
  for (const Aftermath& one : explanation.aftermaths)
    if (out.size() < most && std::find(out.begin(), out.end(), one.entered) == out.end()) out.push_back(one.entered);
  for (const std::string& function : fresh_functions(explanation, most))
    if (out.size() < most && std::find(out.begin(), out.end(), function) == out.end()) out.push_back(function);
  return out;
}

void add_handlers(Explanation& explanation, const std::vector<Call>& calls) {
  std::vector<Suspect>& suspects = explanation.suspects;
  for (const Aftermath& one : explanation.aftermaths) {
    // Find the first call of this function that was made by a function on the stack. Other threads may have called it
    // before.
    const auto on_stack = [&](const Call& candidate) {
      return std::find_if(one.stack.begin(), one.stack.end(),
                          [caller = key_of(candidate.caller)](const auto& function) {
                            return caller == function || is_closure_in(caller, function);
                          });
    };
    const auto call = std::find_if(calls.begin(), calls.end(), [&](const Call& candidate) {
      return key_of(candidate.function) == key_of(one.entered) && candidate.node == one.node &&
             on_stack(candidate) != one.stack.end();
    });
    if (call == calls.end()) continue;
    const auto handler = on_stack(*call);
    // Each function through which the error passed may itself have dropped it, so that the handler only continued. The
    // probability is therefore divided by the number of these functions.
    const auto depth = static_cast<std::size_t>(handler - one.stack.begin());
    const double share = 1 / static_cast<double>(std::max<std::size_t>(depth, 1));
    for (auto inner = one.stack.begin(); inner != handler; ++inner)
      if (const auto found = find_suspect(suspects, *inner); found != suspects.end()) {
        found->features.raise(Feature::passed_on, share);
        if (share < 1) continue;
        // This function certainly passed the error on, so what it did with the error is no evidence.
        for (const Feature feature : {Feature::caught, Feature::differs, Feature::bug_alone, Feature::usual,
                                      Feature::harmless, Feature::by_chance, Feature::dead})
          found->features[feature] = 0;
      }
    if (const auto found = find_suspect(suspects, *handler); found != suspects.end()) {
      found->features.raise(Feature::caught, share);
      found->why += (found->why.empty() ? "" : "; ") +
                    std::string("after the failed call it was the first to go on: it called ") + call->function;
    }
  }
  score(suspects);
}

}  // namespace rose::explain
