#include "explain/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "base/ascii.h"
#include "explain/explain.h"
#include "explain/function_names.h"
#include "explain/reporters.h"
#include "explain/symptom.h"
#include "knowledge/verbs.h"

namespace rose::explain {
namespace {

constexpr std::size_t kMostEntered = 4, kMostFrames = 12;
// Factors for functions that the thread entered before the fault: kEnteredBefore once for each step further back, and
// kByChance if the fault was injected at a given time.
constexpr double kEnteredBefore = 0.75, kByChance = 0.3;
// factor for a function that only one of many runs was executing when a fault at a given time fired
constexpr double kOnce = 0.5;
constexpr std::size_t kMany = 4;
// If at least this many runs have interrupted functions, these functions count in full, even if in all other runs the
// process only waited.
constexpr std::size_t kFewestBrokenOff = 2;
// Factors for reasons: a difference in what happens in a function, or right after it, counts less than one in the
// function's own entry, exception or values.
constexpr double kInside = 0.6, kSuccession = 0.5;
constexpr double kLeastReceived = 0.5;  // after a message, functions count until their share is below this
constexpr double kUnknown = 0.5;        // value of `bug-alone` if no run shows what the fault does without the bug
// A function that gets an error, and then makes calls that it makes in no correct run, has noticed the error: it logs
// it, or gives an answer of another form. It counts less than one that does nothing with it.
constexpr double kActs = 0.25;
constexpr double kLogScale = 4;      // brings the logarithm of a count near 1
constexpr double kFullHelper = 0.1;  // a word counts in full if at least this share of the units of libraries uses it

// at most this many ns pass between two methods that the same exception leaves
constexpr std::int64_t kOneException = 200'000;
constexpr std::int64_t kRethrown = 100'000'000;  // at most this many ns pass until a handler throws the next exception

class Evidences {
 public:
  Evidence& operator[](const std::string& function) {
    Evidence& evidence = all_[key_of(function)];
    // Keep the longest name, not counting type arguments.
    if (const std::size_t size = without_type_arguments(function).size(); size > evidence.name_size)
      evidence.name = function, evidence.name_size = size;
    return evidence;
  }
  Evidence* find(const std::string& function) {
    const auto found = all_.find(key_of(function));
    return found == all_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::map<std::string, Evidence>& all() { return all_; }

 private:
  std::map<std::string, Evidence> all_;
};

std::string times(std::size_t have, std::size_t all) {
  return have == all ? fmt::format("all {}", all) : fmt::format("{} of {}", have, all);
}

// The application's frames, innermost first, each function once. A closure that the function which contains it has
// passed to a library, for example to an iterator, is a part of that function.
std::vector<const schedule::Frame*> application(const schedule::Stack& stack, std::size_t most = kMostFrames) {
  std::vector<const schedule::Frame*> out;
  for (const schedule::Frame& frame : stack.frames) {
    if (!is_applications(frame)) continue;
    if (std::any_of(out.begin(), out.end(), [&](const auto* seen) { return seen->function == frame.function; }))
      continue;
    if (!out.empty() && is_closure_in(out.back()->function, frame.function)) out.back() = &frame;
    else if (out.size() == most) break;
    else out.push_back(&frame);
  }
  return out;
}

// How much each of the stack's `frames` counts. The innermost function received the fault. A crash at a given time,
// however, interrupted all of them: the work of an outer function may be half done, and which function is innermost is
// decided by chance. Outer functions therefore count as well, except the outermost one, in which the thread runs from
// first to last.
std::vector<double> shares_of(std::size_t frames, bool broken_off) {
  std::vector<double> out(frames);
  for (std::size_t i = 0; i < frames; ++i) {
    const double inner = static_cast<double>(i), outer = static_cast<double>(frames - 2 - i) + 0.5;
    out[i] = std::pow(kOuter, broken_off && i + 1 < frames ? std::min(inner + 1, outer) : inner);
  }
  return out;
}

// True for a fault that does not wait for a step of the program, so that it hits whatever is executing.
bool comes_by_time(const Input& input, const std::string& id) {
  const schedule::Fault* fault = input.schedule.find(id);
  if (fault == nullptr || fault->before || fault->kind == schedule::FaultKind::syscall ||
      fault->kind == schedule::FaultKind::exception)
    return false;
  return std::all_of(fault->when.begin(), fault->when.end(),
                     [](const schedule::Condition& one) { return one.kind == schedule::ConditionKind::elapsed; });
}

// True for the stack of an idle thread: it waits for events, for a peer or for a time.
bool waits(const schedule::Stack& stack) {
  for (const schedule::Frame& frame : stack.frames) {
    if (!is_library(frame)) return false;
    if (frame.function.find("futex") != std::string::npos || frame.function.find("pthread_cond_") != std::string::npos)
      return true;
    for (const std::string_view name :
         {"poll", "epoll_wait", "epoll_pwait", "select", "accept", "accept4", "recv", "recvfrom", "recvmsg",
          "nanosleep", "clock_nanosleep", "runtime.gopark", "runtime.netpoll", "runtime.futex"})
      if (frame.function == name || (frame.function.starts_with("__") && frame.function.ends_with(name))) return true;
  }
  return false;
}

// True if the fault is a crash at a given time and interrupted this stack, that is, if the thread did not only wait.
bool breaks_off(const Input& input, const schedule::FaultOutcome& fault, const schedule::Stack& stack) {
  const schedule::Fault* planned = input.schedule.find(fault.id);
  return planned != nullptr && planned->kind == schedule::FaultKind::crash && comes_by_time(input, fault.id) &&
         !waits(stack);
}

// The thread that a fault hit; for faults that hit a whole process, the thread that last met one of its conditions.
std::int32_t thread_of(const schedule::FaultOutcome& fault) {
  for (auto condition = fault.conditions.rbegin(); condition != fault.conditions.rend(); ++condition)
    if (condition->tid != 0 && !condition->node.empty() && (condition->node == fault.node || fault.node.empty()))
      return condition->tid;
  return fault.tid;
}

// The function that a crash leaves half done: the innermost function on the stack that, since it was entered, has
// already changed something or has already made the same call once before. The work of the functions further in is done
// completely or not at all, so the mistake is in the function that makes both steps. Entries of busy functions are not
// recorded, so such a function is passed over, although it may be the one that is half done.
struct HalfDone {
  std::size_t frame = 0;  // index into `frames`
  double share = 0;       // probability that this is the function, and none further in; 0: no function is known
};
HalfDone half_done(const Run& run, const Kinds& kinds, std::int32_t tid, std::int64_t at_ns,
                   const std::vector<const schedule::Frame*>& frames) {
  struct Entered {
    std::int64_t last_ns = 0, before_ns = 0;  // 0: not recorded
  };
  std::unordered_map<std::string, Entered> entered;  // by key of the function
  for (const schedule::Frame* frame : frames) entered[key_of(frame->function)];
  std::unordered_map<std::uint32_t, Entered*> of_kind;  // by kind of step; nullptr: the function is not on the stack
  std::int64_t changed_ns = 0;
  for (auto step = run.steps.rbegin(); step != run.steps.rend(); ++step) {  // newest first
    if (step->tid != tid || step->ts_ns >= at_ns) continue;
    const Kind& kind = kinds[step->kind];
    if (kind.what == StepKind::call && changed_ns == 0) changed_ns = step->ts_ns;
    if (kind.what != StepKind::function) continue;
    const auto [known, fresh] = of_kind.emplace(step->kind, nullptr);
    if (fresh)
      if (const auto found = entered.find(key_of(kind.function)); found != entered.end())
        known->second = &found->second;
    if (Entered* of = known->second; of != nullptr && of->last_ns == 0) of->last_ns = step->ts_ns;
    else if (of != nullptr && of->before_ns == 0) of->before_ns = step->ts_ns;
  }
  std::int64_t inner_again_ns = 0;  // the last entry but one of the next function further in
  std::size_t passed = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Entered& own = entered[key_of(frames[i]->function)];
    if (own.last_ns == 0) {
      ++passed;
      continue;
    }
    if (own.last_ns < std::max(changed_ns, inner_again_ns)) return {i, 1 / static_cast<double>(1 + passed)};
    inner_again_ns = own.before_ns;
  }
  return {};
}

// The function that caught the exception of a failed call. Errors are mishandled where they are caught more often than
// where they are thrown (Yuan et al., "Simple Testing Can Prevent Most Critical Failures", OSDI 2014). The function is
// known only if the runtime reports which methods an exception leaves (Java). A method that catches the exception and
// throws another one within kRethrown did not handle it. `left` is set for those of `frames` that the exceptions leave.
// Returns the index of the frame that caught the last exception, or the number of frames if that is unknown.
std::size_t caught(const Run& run, const Kinds& kinds, std::int32_t tid, std::int64_t at_ns,
                   const std::vector<const schedule::Frame*>& frames, std::vector<bool>& left) {
  std::set<std::string> methods;
  std::int64_t last_ns = at_ns;
  for (const Step& step : run.steps) {
    if (step.tid != tid || step.ts_ns < at_ns || kinds[step.kind].what != StepKind::thrown) continue;
    if (step.ts_ns - last_ns > kRethrown) break;
    methods.insert(key_of(kinds[step.kind].function));
    last_ns = step.ts_ns;
  }
  std::size_t catcher = frames.size();
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (methods.contains(key_of(frames[i]->function))) left[i] = true, catcher = i + 1;
  return catcher;
}

struct OnStack {
  std::map<Feature, double> values;  // added up over the runs
  std::size_t runs = 0, innermost = 0;
  bool by_time = true;  // all faults that hit this function were injected at a given time
  bool at_call = false;
  std::string node, why, called;
};

// True for a fault that limits a resource or changes a clock. Its stacks are those of threads that met the limit, or
// read the clock, some time after the fault began.
bool met_later(const schedule::Fault* planned) {
  return planned != nullptr && (schedule::limits(planned->kind) || planned->kind == schedule::FaultKind::clock);
}

// The feature that a stack of a failing run gives its functions.
Feature said_by(const Input& input, const schedule::FaultOutcome& fault, const schedule::Stack& stack) {
  const schedule::Fault* planned = input.schedule.find(fault.id);
  if (planned != nullptr && planned->kind == schedule::FaultKind::partition) return Feature::waiting;
  if (met_later(planned)) return Feature::arrived;
  // If a fault hits a whole process, the threads that only wait are hit, too.
  if (waits(stack) && (comes_by_time(input, fault.id) || (stack.tid != 0 && stack.tid != thread_of(fault))))
    return Feature::waiting;
  return breaks_off(input, fault, stack) ? Feature::interrupted : Feature::arrived;
}

// True if the fault made a call fail that sends, on a connection that the other side opened: an answer, or something
// that was subscribed to. The sender can do little but close the connection, as when a client leaves. The client,
// however, does not know whether its request was carried out. The side that opened a connection has a port of the range
// from which Linux chooses by default (net.ipv4.ip_local_port_range).
bool lost_answer(const Input& input, const schedule::FaultOutcome& fault) {
  constexpr int kFirstChosen = 32768, kLastChosen = 60999;
  const schedule::Fault* planned = input.schedule.find(fault.id);
  if (planned == nullptr || planned->kind != schedule::FaultKind::syscall) return false;
  const std::string_view text = fault.detail, call = text.substr(0, text.find('('));
  const std::size_t peer = text.find("(peer "), end = text.find(')');
  if (peer == std::string_view::npos || end == std::string_view::npos ||
      (!call.starts_with("write") && !call.starts_with("send")))
    return false;
  const std::size_t colon = text.rfind(':', end);
  int port = 0;
  if (colon == std::string_view::npos || colon < peer) return false;
  (void)std::from_chars(text.data() + colon + 1, text.data() + end, port);
  return port >= kFirstChosen && port <= kLastChosen;
}

// Returns the number of failing runs in which a crash interrupted something.
std::size_t from_stacks(const Input& input, std::size_t failing, Evidences& out) {
  std::map<std::string, OnStack> seen;
  std::size_t known = 0;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    std::map<std::string, std::map<Feature, double>> here;
    std::set<std::string> innermost;
    bool any_broken_off = false;
    for (const schedule::FaultOutcome* fault : fired(run)) {
      for (const schedule::Stack& stack : fault->stacks) {
        const Feature feature = said_by(input, *fault, stack);
        const bool broken_off = feature == Feature::interrupted;
        const std::vector<const schedule::Frame*> frames =
            application(stack, broken_off ? stack.frames.size() : kMostFrames);
        const std::vector<double> shares = shares_of(frames.size(), broken_off);
        any_broken_off = any_broken_off || broken_off;
        const schedule::Fault* planned = input.schedule.find(fault->id);
        const std::int32_t tid = stack.tid != 0 ? stack.tid : thread_of(*fault);
        const std::int64_t at_ns = run.zero_ns + (met_later(planned) ? stack.ns : fault->fired_ns);
        if (planned != nullptr && planned->kind == schedule::FaultKind::crash && !waits(stack))
          if (const HalfDone half = half_done(run, input.kinds, tid, at_ns, frames); half.share > 0)
            here[frames[half.frame]->function][Feature::half_done] = half.share;
        std::vector<bool> left(frames.size());
        if (const std::size_t catcher = caught(run, input.kinds, tid, at_ns, frames, left); catcher < frames.size())
          here[frames[catcher]->function][Feature::caught] = 1;
        for (std::size_t i = 0; i < frames.size(); ++i) {
          const schedule::Frame& frame = *frames[i];
          if (left[i]) here[frame.function][Feature::passed_on] = 1;
          double& share = here[frame.function][feature];
          share = std::max(share, shares[i]);
          if (feature == Feature::arrived && lost_answer(input, *fault)) {
            double& answers = here[frame.function][Feature::answers];
            answers = std::max(answers, shares[i]);
          }
          if (i == 0) innermost.insert(frame.function);
          OnStack& on = seen[frame.function];
          on.by_time = on.by_time && comes_by_time(input, fault->id);
          on.at_call = on.at_call || (planned != nullptr && (schedule::limits(planned->kind) ||
                                                             planned->kind == schedule::FaultKind::syscall ||
                                                             planned->kind == schedule::FaultKind::exception));
          on.node = stack.node.empty() ? fault->node : stack.node;
          if (on.why.empty()) on.why = stack.why.empty() ? fault->detail : stack.why;
          if (i > 0 && on.called.empty()) on.called = frames[i - 1]->function;
          Evidence& evidence = out[frame.function];
          if (evidence.file.empty()) evidence.file = frame.file, evidence.line = frame.line;
        }
      }
    }
    known += any_broken_off ? 1 : 0;
    for (const auto& [function, values] : here) {
      OnStack& on = seen[function];
      ++on.runs;
      on.innermost += innermost.contains(function) ? 1 : 0;
      for (const auto& [feature, value] : values) on.values[feature] += value;
    }
  }
  for (const auto& [function, on] : seen) {
    std::string reason =
        on.innermost == on.runs
            ? fmt::format("it was the innermost function when the fault hit, in {} failing runs",
                          times(on.runs, failing))
            : fmt::format("it was being executed when the fault hit, in {} failing runs", times(on.runs, failing));
    if (on.innermost != on.runs && !on.called.empty()) reason += fmt::format(": it had called {}", on.called);
    if (!on.why.empty()) reason += fmt::format(" ({})", on.why);
    if (on.values.contains(Feature::half_done))
      reason += "; it was half done: it had already changed something, or made the same call before";
    if (on.values.contains(Feature::caught)) reason += "; it caught the exception that the fault caused";
    // If a fault was injected at a given time, and only one run of many was executing the function at that time, then
    // the function counts less, because in the other runs the bug occurs without it.
    const double once = on.by_time && on.runs == 1 && failing >= kMany ? kOnce : 1;
    Evidence& evidence = out[function];
    double weight = 0;
    for (const auto& [feature, value] : on.values) {
      // If a process only waited when it was killed, it is unknown what the kill interrupted.
      const std::size_t of = feature == Feature::interrupted ? std::max(known, kFewestBrokenOff) : failing;
      evidence.features.raise(feature, once * value / static_cast<double>(of));
      weight = std::max(weight, (feature == Feature::waiting ? 0.3 : 1) * evidence.features[feature]);
    }
    evidence.at_failed_call = on.at_call;
    // The client learns of the lost answer, because the connection ends.
    evidence.reported = evidence.reported || evidence.features[Feature::answers] > 0;
    evidence.tell(weight, on.node, std::move(reason));
  }
  return known;
}

// If a fault hits the same functions in runs in which it does no harm, then these functions handle it well, at least in
// those runs, and the mistake may be in another place, to which the news of the fault comes in failing runs only.
void from_harmless_stacks(const Input& input, Evidences& out) {
  std::map<std::string, double> seen;  // the values of all runs, added up
  std::size_t runs = 0;
  for (const Run& run : input.runs) {
    if (run.group != Group::near) continue;
    std::map<std::string, double> here;
    for (const schedule::FaultOutcome* fault : fired(run)) {
      for (const schedule::Stack& stack : fault->stacks) {
        if (said_by(input, *fault, stack) != Feature::arrived) continue;
        const std::vector<const schedule::Frame*> frames = application(stack);
        const std::vector<double> shares = shares_of(frames.size(), false);
        for (std::size_t i = 0; i < frames.size(); ++i) {
          double& share = here[key_of(frames[i]->function)];
          share = std::max(share, shares[i]);
        }
      }
    }
    runs += here.empty() ? 0 : 1;
    for (const auto& [key, share] : here) seen[key] += share;
  }
  for (const auto& [key, share] : seen)
    if (Evidence* evidence = out.find(key); evidence != nullptr && evidence->features[Feature::arrived] > 0)
      evidence->features.raise(Feature::spared, share / static_cast<double>(runs));
}

// The first step by which the fault takes effect, which may be later than the beginning of the fault: a full disk has
// no effect until a process writes, and a memory limit hits the process that needs the first page beyond it.
const Step* effect_of(const Input& input, const Run& run, const schedule::FaultOutcome& fault) {
  const schedule::Fault* planned = input.schedule.find(fault.id);
  if (planned == nullptr) return nullptr;
  for (const Step& step : run.steps) {
    const Kind& kind = input.kinds[step.kind];
    if (step.ts_ns >= run.zero_ns + fault.fired_ns && (kind.node.empty() || kind.node == fault.node) &&
        takes_effect(planned->kind, kind))
      return &step;
  }
  return nullptr;
}

// The function that a failed call's error reached last. An error goes outward from function to function, each of which
// returns it to the next one. The first function that returns as in correct runs has dealt with the error, or has
// dropped it: the code that mishandles errors most often is the code that should handle them (Yuan et al.). This also
// holds for every other result that only failing runs return: the function that gets it acts on it.
void from_results(const Input& input, const Comparison& comparison, std::size_t failing, Evidences& out) {
  const Reporters reporters(input, comparison);
  struct Got {
    double share = 0;  // added up over the runs
    std::string node, by;
  };
  std::map<std::string, Got> got;       // the functions that an error on a stack reached last
  std::set<std::string> passed, outer;  // functions on stacks that passed an error on; outer: not the innermost ones
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    std::set<std::string> here;
    for (const schedule::FaultOutcome* fault : fired(run)) {
      const schedule::Fault* planned = input.schedule.find(fault->id);
      if (planned == nullptr || (planned->kind != schedule::FaultKind::syscall && !schedule::limits(planned->kind)) ||
          lost_answer(input, *fault))
        continue;
      for (const schedule::Stack& stack : fault->stacks) {
        const std::vector<const schedule::Frame*> frames = application(stack);
        // The error went through all functions up to the last that reports it, also through those about which nothing
        // is known, such as inlined ones.
        std::size_t i = 0;
        for (std::size_t k = 0; k < frames.size(); ++k) {
          if (reporters.reported(frames[k]->function)) i = k + 1;
          else if (reporters.known(frames[k]->function)) break;
        }
        for (std::size_t k = 0; k < i; ++k) (k == 0 ? passed : outer).insert(frames[k]->function);
        // If it is not known what a function returns, that function or one further out stopped the error.
        std::size_t end = i;
        while (end < frames.size() && !reporters.known(frames[end]->function)) ++end;
        if (end == frames.size() || reporters.reported(frames[end]->function)) continue;
        for (std::size_t k = i; k <= end; ++k) {
          if (!here.insert(frames[k]->function).second) continue;
          Got& one = got[frames[k]->function];
          one.share += 1 / static_cast<double>(end - i + 1);
          one.node = fault->node;
          one.by = i == 0 ? std::string() : frames[i - 1]->function;
        }
      }
    }
  }
  for (const auto& [function, one] : got) {
    Evidence& evidence = out[function];
    const bool acts = !one.by.empty() && reporters.acts(function);
    evidence.reported = evidence.reported || acts;
    const double share = one.share / static_cast<double>(failing) * (acts ? kActs : 1) *
                         (evidence.features[Feature::spared] > 0 ? kHarmlessResult : 1);
    evidence.features.raise(Feature::caught, share);
    evidence.tell(share, one.node,
                  one.by.empty() ? "the failed call's error reached it and went no further"
                                 : fmt::format("the error that {} returned reached it and went no further", one.by));
  }
  for (const std::string& function : passed) {
    out[function].reported = true;
    out[function].features.raise(Feature::passed_on, 1);
  }
  double share = 1;
  for (const Reporters::Recipient& recipient : reporters.recipients()) {
    Evidence& evidence = out[recipient.function];
    if (!passed.contains(recipient.function) && !outer.contains(recipient.function) &&
        !got.contains(recipient.function))
      evidence.features.raise(Feature::caught, share * recipient.share);
    evidence.tell(share * recipient.share, recipient.node,
                  fmt::format("it is the first to get what {} returns only after the fault", recipient.by));
    share = kOuter;
  }
  // The innermost function can only report the failed call. The functions further out may have to undo something, or
  // repeat the call, so what they do still counts.
  for (const std::string& function : outer) out[function].features.raise(Feature::passed_on, 1);
  for (const auto& [key, function] : reporters.errors()) {
    out[function].reported = out[function].reported || !outer.contains(function);
    out[function].features.raise(Feature::passed_on, 1);
  }
}

// Used if there is no stack. The suspects are then the functions that the thread had entered last or, if the fault
// ended a process, those that this process had entered last. The thread may have returned from them.
void from_entries(const Input& input, std::size_t failing, Evidences& out) {
  struct Entered {
    double share = 0;  // added up over the runs
    std::size_t runs = 0;
    bool last = false;
    std::string before, node;
  };
  std::map<std::string, Entered> seen;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    std::set<std::string> here;
    for (const schedule::FaultOutcome* fault : fired(run)) {
      if (std::any_of(fault->stacks.begin(), fault->stacks.end(), in_application)) continue;
      const std::int32_t tid = thread_of(*fault);
      const Step* effect = effect_of(input, run, *fault);
      const std::int64_t at = effect != nullptr ? effect->ts_ns : run.zero_ns + fault->fired_ns;
      // The kernel ends a whole process, whereas a failed call belongs to one thread.
      const bool killed = effect != nullptr && input.kinds[effect->kind].what == StepKind::process;
      double share = effect == nullptr && comes_by_time(input, fault->id) ? kByChance : 1;
      std::size_t count = 0;
      std::set<std::string> of_fault;
      for (auto step = run.steps.rbegin(); step != run.steps.rend() && count < kMostEntered; ++step) {
        const Kind& kind = input.kinds[step->kind];
        if (step->ts_ns > at || kind.what != StepKind::function) continue;
        if (killed              ? step->pid != effect->pid
            : effect != nullptr ? step->tid != effect->tid
            : tid != 0          ? step->tid != tid
                                : fault->node.empty() || kind.node != fault->node)
          continue;
        if (!of_fault.insert(kind.function).second) continue;
        Entered& entered = seen[kind.function];
        if (here.insert(kind.function).second) ++entered.runs, entered.share += share;
        entered.last = entered.last || count == 0;
        if (effect != nullptr)
          entered.before = killed ? "the kernel ended the process for lack of memory"
                                  : "the fault took effect: " + input.kinds[effect->kind].words;
        entered.node = kind.node;
        share *= kEnteredBefore;
        ++count;
      }
    }
  }
  for (const auto& [function, entered] : seen) {
    Evidence& evidence = out[function];
    evidence.features.raise(Feature::entered_before, entered.share / static_cast<double>(failing));
    evidence.tell(
        0.6 * evidence.features[Feature::entered_before], entered.node,
        fmt::format("{} before {}, in {} failing runs (no stack is known)",
                    entered.last ? "the last watched function that was entered" : "entered shortly",
                    entered.before.empty() ? "the fault arrived" : entered.before, times(entered.runs, failing)));
  }
}

// True if the fault asks a process to end by a signal that it may catch.
bool asks_to_end(const schedule::Fault* planned) {
  return planned != nullptr && planned->kind == schedule::FaultKind::crash && planned->signal != SIGKILL;
}

// A process that catches the request to end receives the fault in the functions with which it reacts: those that it
// enters between the signal and its end, and that no correct run enters. Which function a thread was executing when the
// signal came does not matter. The first of them decides how the process ends, and the next ones are what it calls.
void from_requests(const Input& input, std::size_t failing, Evidences& out) {
  const std::set<std::string> usual = usual_functions(input, false);
  struct Reacts {
    double share = 0;  // added up over the runs
    std::size_t runs = 0;
    std::string node;
  };
  std::map<std::string, Reacts> seen;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    for (const schedule::FaultOutcome* fault : fired(run)) {
      if (!asks_to_end(input.schedule.find(fault->id))) continue;
      const std::int64_t at = run.zero_ns + fault->fired_ns;
      std::set<std::int32_t> asked;  // processes of the node that had run before
      std::set<std::string> here;
      double share = 1;
      for (const Step& step : run.steps) {
        const Kind& kind = input.kinds[step.kind];
        if (kind.what != StepKind::function || (!fault->node.empty() && kind.node != fault->node)) continue;
        if (step.ts_ns < at) {
          asked.insert(step.pid);
          continue;
        }
        if (!asked.contains(step.pid) || usual.contains(key_of(kind.function))) continue;
        if (!here.insert(key_of(kind.function)).second) continue;
        Reacts& reacts = seen[kind.function];
        reacts.share += share;
        ++reacts.runs;
        reacts.node = kind.node;
        if (here.size() == kMostEntered) break;
        share *= kOuter;
      }
    }
  }
  for (const auto& [function, reacts] : seen) {
    Evidence& evidence = out[function];
    evidence.features.raise(Feature::arrived, reacts.share / static_cast<double>(failing));
    evidence.tell(evidence.features[Feature::arrived], reacts.node,
                  fmt::format("with it the process reacts to the request to end, in {} failing runs",
                              times(reacts.runs, failing)));
  }
}

// The nodes that a fault stops, or cuts off from others.
struct Silenced {
  std::set<std::string> nodes, peers;  // peers: the nodes from which `nodes` are cut off; empty: all others
  bool both = false;                   // neither side hears from the other
  [[nodiscard]] bool between(const std::string& from, const std::string& to) const {
    const auto other = [&](const std::string& node) {
      return peers.empty() ? !nodes.contains(node) : peers.contains(node);
    };
    return (nodes.contains(from) && other(to)) || (both && nodes.contains(to) && other(from));
  }
};

std::optional<Silenced> silenced_by(const Input& input, const schedule::FaultOutcome& outcome) {
  const schedule::Fault* fault = input.schedule.find(outcome.id);
  if (fault == nullptr) return std::nullopt;
  const bool cut = fault->kind == schedule::FaultKind::partition || fault->kind == schedule::FaultKind::network;
  if (!cut && fault->kind != schedule::FaultKind::crash && fault->kind != schedule::FaultKind::pause)
    return std::nullopt;
  Silenced one;
  one.nodes.insert(outcome.node.empty() ? fault->node : outcome.node);
  if (!cut) return one;
  one.nodes.insert(fault->side.begin(), fault->side.end());
  one.peers.insert(fault->peers.begin(), fault->peers.end());
  one.both = true;
  return one;
}

std::vector<Silenced> silenced(const Input& input, const Run& run) {
  std::vector<Silenced> out;
  for (const schedule::FaultOutcome* outcome : fired(run))
    if (std::optional<Silenced> one = silenced_by(input, *outcome)) out.push_back(*std::move(one));
  return out;
}

// The functions that handle the messages that a fault withholds from the program. The code that should notice that they
// are missing is in these functions or near them, and an event-driven program waits for messages nowhere else. Failing
// and correct runs may not differ in these functions. Many are entered too often to be watched during the whole run,
// but their entries at its beginning are recorded.
void from_messages(const Input& input, std::size_t failing, Evidences& out) {
  for (const Run& run : input.runs) {
    if (run.group != Group::failing || run.exchanged.empty()) continue;
    const std::vector<Silenced> all = silenced(input, run);
    if (all.empty()) continue;
    struct Handled {
      double sum = 0;
      std::string node;
    };
    std::map<std::string, Handled> handled;  // by function
    // for each thread that has received a message: the share of the next function
    std::unordered_map<std::int32_t, double> next;
    for (const Step& step : run.steps) {
      if (step.ts_ns > run.cut_ns) break;
      const Kind& kind = input.kinds[step.kind];
      if (kind.what == StepKind::taken) {
        const Exchanged& message = run.exchanged[step.source];
        next[step.tid] = std::any_of(all.begin(), all.end(),
                                     [&](const Silenced& one) { return one.between(message.from, message.to); })
                             ? 1
                             : 0;
      }
      if (kind.what != StepKind::function) continue;
      const auto share = next.find(step.tid);
      if (share == next.end() || share->second < kLeastReceived) continue;
      Handled& of = handled[kind.function];
      of.sum += share->second;
      of.node = kind.node;
      share->second *= kOuter;
    }
    double most = 0;
    for (const auto& [function, of] : handled) most = std::max(most, of.sum);
    for (const auto& [function, of] : handled) {
      Evidence& evidence = out[function];
      evidence.features[Feature::receives] += of.sum / most / static_cast<double>(failing);
      evidence.tell(0.3, of.node, "it is entered next when a message of a node has arrived that the fault silences");
    }
  }
}

// The functions that handle the first messages of a node that come after a pause or a partition has ended. The node
// does not know what has happened meanwhile: its messages are late, and the code that should refuse them is in these
// functions or near them. They need not differ from those of correct runs, in which the messages are not late.
void from_late_messages(const Input& input, std::size_t failing, Evidences& out) {
  constexpr std::size_t kMostLate = 8;  // messages of each fault: what follows them is usual again
  struct Handled {
    double share = 0;  // added up over the runs
    std::string node;
  };
  std::map<std::string, Handled> handled;  // by function
  bool paused = false;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing || run.exchanged.empty()) continue;
    std::map<std::string, Handled> here;
    for (const schedule::FaultOutcome* outcome : fired(run)) {
      const schedule::Fault* fault = input.schedule.find(outcome->id);
      const std::optional<Silenced> silent = silenced_by(input, *outcome);
      if (!silent || fault->kind == schedule::FaultKind::crash || !outcome->ended_ns) continue;
      const std::int64_t end = run.zero_ns + *outcome->ended_ns;
      paused = paused || fault->kind == schedule::FaultKind::pause;
      std::map<std::int32_t, double> handling;  // threads that have received such a message: share of the next function
      std::size_t messages = 0;
      double first = 1;
      for (const Step& step : run.steps) {
        if (step.ts_ns < end) continue;
        const Kind& kind = input.kinds[step.kind];
        if (kind.what == StepKind::taken) {
          const Exchanged& message = run.exchanged[step.source];
          const bool late = messages < kMostLate && silent->between(message.from, message.to);
          handling.erase(step.tid);
          if (late) handling.emplace(step.tid, first), first *= kOuter, ++messages;
          else if (messages >= kMostLate && handling.empty()) break;
        }
        if (kind.what != StepKind::function) continue;
        const auto by = handling.find(step.tid);
        if (by == handling.end()) continue;
        Handled& known = here[kind.function];
        known.node = kind.node;
        known.share = std::max(known.share, by->second);
        if (fault->kind != schedule::FaultKind::pause || (by->second *= kOuter) < kLeastReceived) handling.erase(by);
      }
    }
    for (const auto& [function, of] : here) {
      Handled& all = handled[function];
      all.share += of.share;
      all.node = of.node;
    }
  }
  for (const auto& [function, of] : handled) {
    Evidence& evidence = out[function];
    // A node that was paused cannot know it, whereas a node that was cut off can, and may have taken it into account.
    const Feature feature = paused ? Feature::late : Feature::receives;
    evidence.features.raise(feature, of.share / static_cast<double>(failing));
    evidence.tell(0.3 * evidence.features[feature], of.node, "it handles a message that comes late, after the fault");
  }
}

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

// Uses the stack trace in a message that distinguishes the runs: with it, the program reports where it was.
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
void describe(const Difference& d, bool killed, Evidence& evidence) {
  if (evidence.reported || d.weight <= evidence.heaviest_of_own || is_cut_short(d, killed, evidence)) return;
  evidence.heaviest_of_own = d.weight;
  Features& f = evidence.features;
  f[Feature::differs] = d.strength;
  f[Feature::bug_alone] = d.only_bug ? 1 : d.clean && d.near_runs == 0 ? kUnknown : 0;
  f[Feature::usual] = d.earlier;
  f[Feature::harmless] = d.harmless ? 1 : 0;
  f[Feature::by_chance] = d.by_chance.value_or(0);
  f[Feature::dead] = d.missing && killed ? 1 : 0;
}

void from_differences(const Input& input, const Comparison& comparison, bool known_broken_off, Evidences& out) {
  const bool killed =
      std::any_of(input.schedule.faults.begin(), input.schedule.faults.end(),
                  [](const schedule::Fault& fault) { return fault.kind == schedule::FaultKind::crash; });
  const bool bug_alone = std::any_of(comparison.differences.begin(), comparison.differences.end(),
                                     [](const Difference& d) { return d.only_bug; });
  const std::set<std::uint32_t> outermost = outermost_left(input);
  for (const Difference& d : comparison.differences) {
    const Kind& kind = input.kinds[d.kind];
    const std::string runs = counted(d);
    if (d.next != kNoKind) {
      if (kind.what != StepKind::function) continue;
      out[kind.function].tell(d.weight * kSuccession, kind.node,
                              fmt::format("what its thread does next differs: {}{} in {}",
                                          d.missing ? "no longer " : "", input.kinds[d.next].words, runs));
      continue;
    }
    // If the message contains a stack trace of the program, the trace shows where the program was.
    if (kind.what == StepKind::message && !d.missing) from_trace(input, d, d.weight, runs, out);
    switch (kind.what) {
      case StepKind::function:
        // A step that correct runs make earlier normally counts against a function. It does not if the function made a
        // call that an earlier fault made fail: a later fault then made the function start again.
        if (out[kind.function].at_failed_call && d.earlier > kUnknown && !d.missing) break;
        if (d.clean && !d.missing &&
            (d.only_bug || d.near_runs == 0 || (!bug_alone && !(known_broken_off && d.harmless))))
          out[kind.function].fresh.insert(kind.node);
        if (d.clean && d.missing && !is_cut_short(d, killed, out[kind.function]))
          out[kind.function].lost.insert(kind.node);
        describe(d, killed, out[kind.function]);
        out[kind.function].tell(
            d.weight, kind.node,
            fmt::format("{} after the fault in {}", d.missing ? "no longer entered" : "entered", runs));
        break;
      case StepKind::thrown:
        // If the function only passes on the fault's own exception, the exception is no evidence against it.
        if (out[kind.function].features[Feature::passed_on] == 0) {
          describe(d, killed, out[kind.function]);
          if (outermost.contains(d.kind) && !d.missing)
            out[kind.function].features.raise(Feature::broken_off, d.weight);
        }
        out[kind.function].tell(d.weight, kind.node,
                                fmt::format("{} by {} after the fault in {}", d.missing ? "no longer left" : "left",
                                            std::string_view(kind.words).substr(kind.words.rfind(' ') + 1), runs));
        break;
      case StepKind::value:
        if (kind.function.empty()) break;
        // The caller decides on an argument, so the argument is no evidence against the function that gets it.
        if (!input.questions[kind.question].about_argument()) describe(d, killed, out[kind.function]);
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

// How many different functions are entered directly before this function, and how many directly after it.
void from_use(const Input& input, Evidences& out) {
  struct Use {
    std::string function;
    std::set<std::size_t> before, after;
  };
  std::vector<Use> uses;
  std::map<std::string, std::size_t> numbers;
  std::vector<std::size_t> use_of(input.kinds.size(), 0);  // by kind, for functions
  for (std::uint32_t id = 0; id < input.kinds.size(); ++id) {
    if (input.kinds[id].what != StepKind::function) continue;
    const auto [at, fresh] = numbers.emplace(key_of(input.kinds[id].function), uses.size());
    if (fresh) uses.push_back({input.kinds[id].function, {}, {}});
    use_of[id] = at->second;
  }
  for (const Run& run : input.runs) {
    if (run.group != Group::sound && run.group != Group::failing) continue;
    std::unordered_map<std::int32_t, std::size_t> last;  // by thread
    for (const Step& step : run.steps) {
      if (input.kinds[step.kind].what != StepKind::function) continue;
      const std::size_t own = use_of[step.kind];
      const auto [at, fresh] = last.emplace(step.tid, own);
      if (!fresh && at->second != own) uses[own].before.insert(at->second), uses[at->second].after.insert(own);
      at->second = own;
    }
  }
  for (const Use& use : uses)
    if (Evidence* evidence = out.find(use.function))
      evidence->features[Feature::reused] =
          (std::log1p(static_cast<double>(use.before.size())) - std::log1p(static_cast<double>(use.after.size()))) /
          kLogScale;
}

// How common the first word of the name is in libraries. "applyAll" and "apply_all" both begin with the word "apply",
// and more words follow.
double share_of_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  std::string word;
  std::size_t at = 0;
  for (; at < name.size() && is_alpha(name[at]); ++at) {
    const bool before_lower = at + 1 < name.size() && is_lower(name[at + 1]);
    if (at > 0 && is_upper(name[at]) && (is_lower(name[at - 1]) || before_lower)) break;
    word += lower_case(name[at]);
  }
  return knowledge::library_share(word, at < name.size());
}

}  // namespace

void Evidence::tell(double weight, const std::string& node, std::string reason) {
  if (!node.empty()) nodes.insert(node);
  if (std::none_of(why.begin(), why.end(), [&](const auto& one) { return one.second == reason; }))
    why.emplace(weight, std::move(reason));
}

const std::array<FeatureEntry, kFeatures>& features() {
  static constexpr std::array<FeatureEntry, kFeatures> kAll = {{
#define ROSE_FEATURE(constant, name, sign, prior, what) {Feature::constant, name, what, sign, prior},
#include "explain/features.def"
#undef ROSE_FEATURE
  }};
  return kAll;
}

void add_name(const std::string& function, Features& into) {
  const std::string key = key_of(function);
  const std::size_t at = key.find_last_of(":.");
  const std::string_view last = std::string_view(key).substr(at == std::string::npos ? 0 : at + 1);
  const bool makes = last.starts_with('<') || last.starts_with('~');  // "<init>" of Java, "~Lines" of C++
  into[Feature::helper] = makes ? 1 : std::min(1.0, share_of_name(last) / kFullHelper);
  into[Feature::base] = is_base(function) ? 1 : 0;
}

std::set<std::string> usual_functions(const Input& input, bool after_fault) {
  std::set<std::string> usual;
  for (const Run& run : input.runs) {
    if (run.group != Group::sound) continue;
    for (const Step& step : run.steps)
      if ((!after_fault || step.ts_ns > run.cut_ns) && input.kinds[step.kind].what == StepKind::function)
        usual.insert(key_of(input.kinds[step.kind].function));
  }
  return usual;
}

std::map<std::string, Evidence> evidence_of(const Input& input, const Comparison& comparison) {
  const auto failing = static_cast<std::size_t>(std::count_if(input.runs.begin(), input.runs.end(), [](const Run& run) {
    return run.group == Group::failing && !fired(run).empty();
  }));
  if (failing == 0) return {};
  Evidences evidences;
  const bool known_broken_off = from_stacks(input, failing, evidences) > 0;
  from_harmless_stacks(input, evidences);
  from_results(input, comparison, failing, evidences);
  from_entries(input, failing, evidences);
  from_requests(input, failing, evidences);
  from_messages(input, failing, evidences);
  from_late_messages(input, failing, evidences);
  from_differences(input, comparison, known_broken_off, evidences);
  from_use(input, evidences);
  std::vector<std::string> names;
  for (const auto& [key, evidence] : evidences.all()) names.push_back(evidence.name);
  const std::map<std::string, std::string> named = named_by(input.oracle_output, names);
  for (auto& [key, evidence] : evidences.all()) {
    add_name(evidence.name, evidence.features);
    const auto word = named.find(evidence.name);
    if (word == named.end()) continue;
    evidence.features[Feature::named] = 1;
    evidence.named_by = word->second;
  }
  return std::move(evidences.all());
}

}  // namespace rose::explain
