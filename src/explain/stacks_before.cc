#include "explain/stacks_before.h"

#include <algorithm>

namespace rose::explain {
namespace {

using schedule::Fault;
using schedule::FaultKind;
using schedule::FaultOutcome;
using schedule::Frame;
using schedule::Stack;

bool is_native(const Frame& frame) { return !frame.module.empty(); }

bool lacks_managed(const Stack& stack) {
  return !stack.frames.empty() && std::none_of(stack.frames.begin(), stack.frames.end(), schedule::is_managed);
}

// The names of the native functions at the innermost end of a stack, innermost first.
std::vector<std::string> native_end(const Stack& stack) {
  std::vector<std::string> out;
  for (const Frame& frame : stack.frames) {
    if (!is_native(frame)) break;
    out.push_back(frame.function);
  }
  return out;
}

// True for a fault whose last condition is met when a call returns on the node that the fault hits.
bool hits_at_return(const Fault& fault) {
  if (fault.kind != FaultKind::crash && fault.kind != FaultKind::pause) return false;
  if (fault.before || fault.when.empty()) return false;
  const schedule::Condition& last = fault.when.back();
  return last.kind == schedule::ConditionKind::syscall && (last.node.empty() || last.node == fault.node);
}

}  // namespace

std::optional<schedule::Schedule> before_calls(const schedule::Schedule& schedule, const std::vector<Run>& runs,
                                               const std::function<bool(const std::string&)>& is_java) {
  schedule::Schedule out = schedule;
  bool any = false;
  for (Fault& fault : out.faults) {
    if (!hits_at_return(fault)) continue;
    const bool lacks = std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
      if (run.group != Group::failing) return false;
      const std::vector<const FaultOutcome*> outcomes = fired(run);
      return std::any_of(outcomes.begin(), outcomes.end(), [&](const FaultOutcome* outcome) {
        return outcome->id == fault.id && is_java(outcome->node) &&
               std::any_of(outcome->stacks.begin(), outcome->stacks.end(), lacks_managed);
      });
    });
    if (!lacks) continue;
    const schedule::Condition last = fault.when.back();
    fault.when.pop_back();
    fault.before = last.call;
    fault.before_count = last.count;
    any = true;
  }
  if (!any) return std::nullopt;
  return out;
}

void complete_stacks(const std::vector<FaultOutcome>& reported, std::vector<FaultOutcome>& faults) {
  for (FaultOutcome& fault : faults) {
    const auto same = std::find_if(reported.begin(), reported.end(),
                                   [&](const FaultOutcome& one) { return one.id == fault.id && one.fired; });
    if (same == reported.end()) continue;
    for (Stack& stack : fault.stacks) {
      if (!lacks_managed(stack)) continue;
      const std::vector<std::string> native = native_end(stack);
      const auto whole = std::find_if(same->stacks.begin(), same->stacks.end(), [&](const Stack& one) {
        return !lacks_managed(one) && !native.empty() && native_end(one) == native;
      });
      if (whole == same->stacks.end()) continue;
      stack.frames = whole->frames;
      stack.incomplete = whole->incomplete;
      stack.why += stack.why.empty() ? "" : "; ";
      stack.why += "the Java frames are those of a run in which the fault came just before this call";
    }
  }
}

}  // namespace rose::explain
