// Finds the callers of functions that only failing runs or only correct runs enter, because the caller decided whether
// the function is called.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "explain/explain.h"
#include "explain/function_names.h"
#include "explain/model.h"
#include "symbols/values.h"

namespace rose::explain {
namespace {

constexpr std::size_t kMostNameBytes = 64;  // longest text of a value, in bytes
constexpr std::size_t kMostCallers = 3;     // at most this many callers of one function are used
constexpr std::size_t kMostDecisions = 5;   // later decisions count as consequences of the first five
// if the feature `arrived` of a function is higher, the function was on the stack that faults hit in more than one run
// of five
constexpr double kOnStack = 0.2;

// Completes a long Java name of which only the end was recorded.
std::string whole_name(const Explanation& explanation, const std::string& recorded) {
  if (recorded.size() != kMostNameBytes) return recorded;
  for (const std::string& function : explanation.path)
    if (key_of(function).ends_with(recorded)) return key_of(function);
  return recorded;
}

// For a `go` statement in main.begin whose function has arguments, the compiler makes the function
// "main.begin.gowrap1"; for a `defer` statement, "main.begin.deferwrap1".
void unwrap(Call& call) {
  const std::size_t last = call.caller.rfind('.');
  if (last == std::string::npos) return;
  const std::string_view word = std::string_view(call.caller).substr(last + 1);
  const bool starts = word.starts_with("gowrap");
  if (!starts && !word.starts_with("deferwrap")) return;
  call.starts = call.starts || starts;
  call.caller.resize(last);
}

// Parses a caller in a value of "store:callers". The function that started a goroutine counts as the caller of the
// goroutine's function. In the same way, a function that passes a callback to a library counts as the caller of the
// callback, which the library runs later or in another thread.
Call read_call(std::string callee, const std::string& node, std::string_view text) {
  Call call;
  call.function = std::move(callee);
  call.node = node;
  if (text.starts_with(symbols::kFurtherOut)) text.remove_prefix(symbols::kFurtherOut.size());
  for (const std::string_view before : {symbols::kGoStatement, symbols::kHandedOver})
    if (text.starts_with(before)) text.remove_prefix(before.size()), call.starts = true;
  const std::size_t at = text.rfind(" (");
  call.caller = text.substr(0, at);
  unwrap(call);
  if (at == std::string::npos || !text.ends_with(')')) return call;
  const std::string place(text.substr(at + 2, text.size() - at - 3));
  if (place.starts_with('+')) return call;
  const std::size_t before = place.find_last_of(": ");
  if (!place.starts_with("line ")) call.file = place.substr(0, before);
  if (before != std::string::npos) std::from_chars(place.data() + before + 1, place.data() + place.size(), call.line);
  return call;
}

// The frame of `function`, at the position of the call.
schedule::Frame frame_at(const Call& call, const std::string& function) {
  schedule::Frame frame;
  frame.function = function;
  frame.file = call.file;
  frame.line = call.line;
  return frame;
}

// True if the caller of a suspect can be a suspect as well: it has a name, belongs to the application, and is another
// function.
bool may_be_suspect(const Call& call) {
  return !call.caller.empty() && call.caller != symbols::kOutsideFile && key_of(call.caller) != key_of(call.function) &&
         is_applications(frame_at(call, call.caller));
}

void add_why(Suspect& suspect, const std::string& why) {
  if (suspect.why.find(why) == std::string::npos) suspect.why += (suspect.why.empty() ? "" : "; ") + why;
}

// Raises the feature of the calling function to at least `value`. A caller that is not a suspect yet becomes one.
void accuse(std::vector<Suspect>& suspects, const Call& call, Feature feature, double value, const std::string& why) {
  auto caller = find_suspect(suspects, call.caller);
  if (caller == suspects.end()) {
    Suspect fresh;
    fresh.function = call.caller;
    fresh.file = call.file;
    fresh.line = call.line;
    fresh.node = call.node;
    add_name(call.caller, fresh.features);
    caller = suspects.insert(suspects.end(), std::move(fresh));
  }
  caller->features.raise(feature, value);
  add_why(*caller, why);
}

std::vector<std::string> functions_with(const Explanation& explanation, std::set<std::string> Suspect::* nodes,
                                        std::size_t most) {
  std::vector<std::string> out;
  for (const Suspect& suspect : explanation.suspects)
    if (!(suspect.*nodes).empty() && out.size() < most) out.push_back(suspect.function);
  return out;
}

// Selects the functions that only the runs of one side (failing or correct) enter.
struct OneSided {
  std::set<std::string> Suspect::* nodes;  // the nodes on which only the runs of this side enter the function
  bool missing = false;                    // failing runs lack these calls
  std::string_view why;                    // example: "which only failing runs enter after the fault"
};

std::vector<Call> add_callers_of(Explanation& explanation, std::vector<Call> calls, const OneSided& side) {
  for (Call& call : calls) call.caller = whole_name(explanation, call.caller);
  std::vector<Suspect>& suspects = explanation.suspects;
  const auto one_sided = [&](const Suspect& suspect, const std::string& node) {
    const std::set<std::string>& nodes = suspect.*side.nodes;
    return nodes.contains(node) || nodes.contains("") || (node.empty() && !nodes.empty());
  };
  // True if only the runs of this side enter the callee on that node. Otherwise the call is not evidence.
  const auto tells = [&](const Call& call) {
    const auto callee = find_suspect(suspects, call.function);
    return callee != suspects.end() && one_sided(*callee, call.node);
  };
  std::map<std::string, std::vector<const Call*>> callers;  // by key of the callee
  for (const Call& call : calls) {
    if (!tells(call) || key_of(call.caller) == key_of(call.function)) continue;
    std::vector<const Call*>& of = callers[key_of(call.function)];
    const bool again = std::any_of(
        of.begin(), of.end(), [&](const Call* one) { return one->caller == call.caller && one->line == call.line; });
    if (may_be_suspect(call) && !again && of.size() < kMostCallers) of.push_back(&call);
  }
  // A closure is called by the function that it was passed to. If, however, the function that contains the closure is
  // on the stack, then that function made the decision.
  const auto handed_by = [&](const Call& call) -> const Call& {
    for (const Call* one = &call;; ++one) {
      if (is_closure_in(call.function, one->caller)) return *one;
      if (one == &calls.back() || key_of(one[1].function) != key_of(one->caller)) return call;
    }
  };
  // The first call of a one-sided function after the fault may be a decision. Later ones may be its consequences.
  struct Decision {
    const Call* call;  // the call of the function that only the runs of this side enter
    const Call* by;    // the call whose caller decided: `call`, or a call further out on its stack
  };
  std::vector<Decision> decisions;  // the first decision of each function, by time
  for (const Call& inner : calls) {
    const Call& call = handed_by(inner);
    const auto caller = find_suspect(suspects, call.caller);
    if (!tells(inner) || !may_be_suspect(call)) continue;
    if (caller != suspects.end() && one_sided(*caller, call.node)) continue;
    // An error is passed outward along the stack that the fault hit, so what the functions on that stack do is a
    // consequence of the error.
    if (caller != suspects.end() && caller->features[Feature::arrived] > kOnStack) continue;
    const bool again = std::any_of(decisions.begin(), decisions.end(),
                                   [&](const Decision& one) { return key_of(one.by->caller) == key_of(call.caller); });
    if (!again && decisions.size() < kMostDecisions) decisions.push_back({&inner, &call});
  }
  std::vector<const Call*> accused;
  for (Suspect& callee : suspects) {  // best first
    const auto of = callers.find(key_of(callee.function));
    if (of == callers.end()) continue;
    for (const Call* call : of->second) {
      const std::string called_by =
          (call->starts ? "handed over (a goroutine, a thread or a callback) by " : "called by ") +
          at_place(frame_at(*call, call->caller));
      callee.why += "; " + called_by;
      for (StoryLine& line : explanation.story)
        if (const std::string enters = "enters " + callee.function;
            line.first_wrong && line.text.starts_with(enters + ":"))
          line.text.insert(enters.size(), ", " + called_by);
      accused.push_back(call);
    }
    callee.features[Feature::decided_outside] = 1;
  }
  const auto why = [&](const Call& call) {
    return fmt::format("{}{} {}, {}", side.missing ? "no longer " : "",
                       call.starts ? "hands over (as a goroutine, a thread or a callback)" : "calls",
                       at_place(frame_at(call, call.function)), side.why);
  };
  double share = 1;
  for (const auto& [call, by] : decisions) {
    // The called function may itself lack a check, and then it is the one that mishandled the fault. This is impossible
    // for a function that is no longer called.
    if (Features& of = find_suspect(suspects, call->function)->features; !side.missing)
      of[Feature::decided_outside] = std::min(of[Feature::decided_outside], 1 - share);
    accuse(suspects, *by, Feature::decided_first, share,
           call == by ? why(*call)
                      : fmt::format("hands over {}, {}", at_place(frame_at(*call, call->function)), side.why));
    // A function further out passed on the value on which the decision depends, or decided to call this caller. It is
    // therefore accused, too, unless only the runs of this side enter it.
    double outer = share;
    for (const Call* one = by; one != &calls.back() && key_of(one[1].function) == key_of(one->caller); ++one) {
      const auto caller = find_suspect(suspects, one[1].caller);
      if (caller != suspects.end() && caller->features[Feature::arrived] > kOnStack)
        break;  // the error was passed on to this function, so what it does is a consequence
      if (outer *= kOuter; may_be_suspect(one[1]) && (caller == suspects.end() || !one_sided(*caller, one[1].node)))
        accuse(suspects, one[1], Feature::decided_first, outer,
               fmt::format("on the stack of that call: it calls {}", at_place(frame_at(one[1], one[1].function))));
    }
    share /= 2;
  }
  for (const Call* call : accused)
    if (const auto caller = find_suspect(suspects, call->caller); caller != suspects.end())
      add_why(*caller, why(*call));
  std::vector<Call> first;
  if (!decisions.empty()) first.push_back(*decisions.front().by);
  score(suspects);
  return first;
}

}  // namespace

std::vector<std::string> fresh_functions(const Explanation& explanation, std::size_t most) {
  return functions_with(explanation, &Suspect::fresh, most);
}

std::vector<std::string> lost_functions(const Explanation& explanation, std::size_t most) {
  return functions_with(explanation, &Suspect::lost, most);
}

std::optional<std::int64_t> first_fault_ns(const schedule::RunResult& result) {
  std::optional<std::int64_t> first;
  for (const schedule::FaultOutcome& fault : result.faults)
    if (fault.fired && (!first || fault.fired_ns < *first)) first = fault.fired_ns;
  return first;
}

std::string caller_in(std::string_view text) {
  return read_call({}, {}, text.substr(0, text.find(symbols::kInlinedInto))).caller;
}

std::vector<Call> calls_of(const schedule::RunResult& result, const std::vector<std::string>& queries,
                           std::int64_t since_ns) {
  const std::int64_t from = result.trace.meta.workload_ts + since_ns;
  std::vector<Call> calls;
  const schedule::Value* before = nullptr;
  for (const schedule::Value& value : result.values) {
    if (value.question >= queries.size() || value.ts_ns <= from || value.text == schedule::kNotReadable) continue;
    const std::string& query = queries[value.question];
    std::string_view text = value.text;
    std::size_t end = text.find(symbols::kInlinedInto);
    Call call = read_call(query.substr(0, query.rfind(':')), value.node, text.substr(0, end));
    if (value.text.starts_with(symbols::kFurtherOut)) {
      const bool goes_on = before != nullptr && before->ts_ns == value.ts_ns && before->tid == value.tid &&
                           before->question == value.question;
      if (!goes_on || calls.back().starts || call.caller == symbols::kGoroutineBegins) continue;
      call.function = calls.back().caller;
    }
    before = &value;
    calls.push_back(std::move(call));
    // If the caller was inlined into another function, that function called it.
    while (end != std::string_view::npos) {
      text.remove_prefix(end + symbols::kInlinedInto.size());
      end = text.find(symbols::kInlinedInto);
      calls.push_back(read_call(calls.back().caller, value.node, text.substr(0, end)));
    }
  }
  return calls;
}

std::vector<Call> add_callers(Explanation& explanation, std::vector<Call> calls) {
  return add_callers_of(explanation, std::move(calls),
                        {&Suspect::fresh, false, "which only failing runs enter after the fault"});
}

void add_lost_callers(Explanation& explanation, std::vector<Call> calls) {
  // A missing call is no decision if a crash interrupted the calling function, or if a crash killed the process of that
  // function.
  const auto with = [&](const std::string& function, std::initializer_list<Feature> any) {
    const auto one = find_suspect(explanation.suspects, function);
    return one != explanation.suspects.end() &&
           std::any_of(any.begin(), any.end(), [&](Feature feature) { return one->features[feature] > 0; });
  };
  std::erase_if(calls, [&](const Call& call) {
    return explanation.killed.contains({call.node, key_of(whole_name(explanation, call.caller))}) ||
           (with(call.function, {Feature::dead}) && with(call.caller, {Feature::arrived, Feature::interrupted}));
  });
  (void)add_callers_of(explanation, std::move(calls),
                       {&Suspect::lost, true, "which all correct runs enter after the moment of the fault"});
}

std::vector<std::string> decided_by_clock(const schedule::Schedule& schedule, const std::vector<Call>& decided) {
  std::vector<std::string> out;
  for (const Call& call : decided) {
    const bool wrong = std::any_of(schedule.faults.begin(), schedule.faults.end(), [&](const schedule::Fault& fault) {
      return fault.kind == schedule::FaultKind::clock && (fault.node.empty() || fault.node == call.node);
    });
    if (wrong && std::find(out.begin(), out.end(), call.caller) == out.end()) out.push_back(call.caller);
  }
  return out;
}

void add_outer_callers(Explanation& explanation, const std::vector<std::string>& functions, std::vector<Call> calls) {
  std::vector<Suspect>& suspects = explanation.suspects;
  for (const std::string& function : functions) {
    if (find_suspect(suspects, function) == suspects.end()) continue;
    std::set<std::string> callers;
    for (Call& call : calls) {
      if (key_of(call.function) != key_of(function)) continue;
      call.caller = whole_name(explanation, call.caller);
      if (may_be_suspect(call) && callers.size() < kMostCallers && callers.insert(call.caller).second)
        accuse(suspects, call, Feature::clock_outside, 1,
               fmt::format("calls {}, in which the wrong clock first makes a difference",
                           at_place(frame_at(call, function))));
    }
    // No caller is known: the thread begins with this function, or runs in it all the time.
    if (const auto own = find_suspect(suspects, function); callers.empty()) {
      own->features[Feature::clock_outside] = 1;
      add_why(*own, "the wrong clock first makes a difference in it");
    }
  }
  score(suspects);
}

}  // namespace rose::explain
