// Adds the features that follow from the stacks that faults hit, and from the results that functions on these stacks
// return.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <optional>

#include "explain/evidences.h"
#include "explain/function_names.h"
#include "explain/reporters.h"

namespace rose::explain {
namespace {

// Factor for a function if the fault was injected at a given time and only one of at least kMany failing runs was
// executing the function then.
constexpr double kOnce = 0.5;
constexpr std::size_t kMany = 4;
// If at least this many runs have interrupted functions, these functions count in full, even if in all other runs the
// process only waited.
constexpr std::size_t kFewestBrokenOff = 2;
// A function that gets an error, and then makes calls that it makes in no correct run, has noticed the error: it logs
// the error, or gives an answer of another form. Such a function counts less than one that does nothing with the error.
constexpr double kActs = 0.25;
constexpr double kEndedWaiting = 0.3;            // factor for a thread that only waited when SIGKILL ended its process
constexpr std::int64_t kCallEnds = 10'000'000;   // ns after a kill within which the interrupted call is recorded
constexpr std::int64_t kRethrown = 100'000'000;  // at most this many ns pass until a handler throws the next exception

// The weight of each of the stack's `frames`. The innermost function received the fault. A crash at a given time,
// however, interrupted all functions on the stack: the work of an outer function may be half done, and which function
// is innermost is decided by chance. Outer functions therefore count as well, except the outermost one, in which the
// thread is from its start to its end.
std::vector<double> shares_of(std::size_t frames, bool broken_off) {
  std::vector<double> out(frames);
  for (std::size_t i = 0; i < frames; ++i) {
    const double inner = static_cast<double>(i), outer = static_cast<double>(frames - 2 - i) + 0.5;
    out[i] = std::pow(kOuter, broken_off && i + 1 < frames ? std::min(inner + 1, outer) : inner);
  }
  return out;
}

// What an idle thread waits for: a given time, or anything else, such as events, a peer or another thread.
enum class WaitsFor { nothing, time, other };
WaitsFor waits_for(const schedule::Stack& stack) {
  for (const schedule::Frame& frame : stack.frames) {
    if (!is_library(frame)) return WaitsFor::nothing;
    const auto is = [&](std::string_view name) {
      return frame.function == name || (frame.function.starts_with("__") && frame.function.ends_with(name));
    };
    if (is("nanosleep") || is("clock_nanosleep")) return WaitsFor::time;
    if (frame.function.find("futex") != std::string::npos || frame.function.find("pthread_cond_") != std::string::npos)
      return WaitsFor::other;
    for (const std::string_view name : {"poll", "epoll_wait", "epoll_pwait", "select", "accept", "accept4", "recv",
                                        "recvfrom", "recvmsg", "runtime.gopark", "runtime.netpoll", "runtime.futex"})
      if (is(name)) return WaitsFor::other;
  }
  return WaitsFor::nothing;
}

// The thread whose stack this is.
std::int32_t thread_in(const schedule::FaultOutcome& fault, const schedule::Stack& stack) {
  return stack.tid != 0 ? stack.tid : explain::thread_of(fault);
}

// True if the thread was in the middle of a change of files: it had changed a file since a function of its stack was
// entered, and the function that it had entered last had not returned. A thread that sleeps in its main loop until the
// next round has returned from the functions that changed something.
bool in_change(const Run& run, const Kinds& kinds, std::int32_t tid, std::int64_t at_ns, const schedule::Stack& stack) {
  std::set<std::string> on_stack;
  for (const schedule::Frame& frame : stack.frames) on_stack.insert(key_of(frame.function));
  std::int64_t file_ns = 0;
  bool last = true;
  for (auto step = run.steps.rbegin(); step != run.steps.rend(); ++step) {  // newest first
    if (step->tid != tid || step->ts_ns >= at_ns) continue;
    const Kind& kind = kinds[step->kind];
    if (kind.changes_file && file_ns == 0) file_ns = step->ts_ns;
    if (kind.what != StepKind::function) continue;
    const bool on = on_stack.contains(key_of(kind.function));
    if (last && !on) return false;
    last = false;
    if (on && file_ns != 0) return true;
  }
  return false;
}

// True for the stack of a thread that only waited when the fault hit its process. A thread that sleeps while it changes
// files does not: it paces its work, or tries again later.
bool only_waits(const Run& run, const Kinds& kinds, const schedule::FaultOutcome& fault, const schedule::Stack& stack) {
  const WaitsFor what = waits_for(stack);
  return what == WaitsFor::other || (what == WaitsFor::time && !in_change(run, kinds, thread_in(fault, stack),
                                                                          run.zero_ns + fault.fired_ns, stack));
}

// True if this change was the last one that the function made: in most correct runs, the thread enters the function
// again before it makes the next change.
bool is_last_change(const Input& input, std::uint32_t change, const std::string& function) {
  std::vector<bool> enters(input.kinds.size());
  for (std::uint32_t id = 0; id < enters.size(); ++id)
    enters[id] = input.kinds[id].what == StepKind::function && key_of(input.kinds[id].function) == function;
  std::size_t again = 0, more = 0;
  for (const Run& run : input.runs) {
    if (run.group != Group::sound) continue;
    std::set<std::int32_t> changed;  // threads that made this change, and neither entered the function nor changed more
    for (const Step& step : run.steps) {
      if (step.tid == 0) continue;
      if (enters[step.kind]) again += changed.erase(step.tid);
      if (input.kinds[step.kind].changes_file) more += changed.erase(step.tid);
      if (step.kind == change) changed.insert(step.tid);
    }
  }
  return again > more;
}

// The function that a crash leaves half done: the innermost function on the stack that, since it was entered, has
// already changed something or has already called the next function further in once before. The functions further in
// have done their work completely or not at all, so the mistake is in the function that has done a part of its work.
// Entries of busy functions are not recorded, so such a function is passed over, although it may be the one that is
// half done.
struct HalfDone {
  std::size_t frame = 0;  // index into `frames`
  double share = 0;       // probability that this function, and none further in, was half done; 0: no function is known
};
HalfDone half_done(const Input& input, const Run& run, std::int32_t tid, std::int64_t at_ns,
                   const std::vector<const schedule::Frame*>& frames) {
  struct Entered {
    std::int64_t last_ns = 0, before_ns = 0;  // 0: not recorded
  };
  std::unordered_map<std::string, Entered> entered;  // by key of the function
  for (const schedule::Frame* frame : frames) entered[key_of(frame->function)];
  std::unordered_map<std::uint32_t, Entered*> of_kind;  // by kind of step; nullptr: the function is not on the stack
  std::int64_t changed_ns = 0;
  std::uint32_t change = kNoKind;                                           // the last one
  for (auto step = run.steps.rbegin(); step != run.steps.rend(); ++step) {  // newest first
    if (step->tid != tid || step->ts_ns >= at_ns + kCallEnds) continue;
    const Kind& kind = input.kinds[step->kind];
    if (kind.what == StepKind::call && !opens_to_read(kind) && changed_ns == 0)
      changed_ns = step->ts_ns, change = step->kind;
    if (kind.what != StepKind::function || step->ts_ns >= at_ns) continue;
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
    const bool complete = own.last_ns < changed_ns && own.last_ns >= inner_again_ns &&
                          is_last_change(input, change, key_of(frames[i]->function));
    if (!complete && own.last_ns < std::max(changed_ns, inner_again_ns))
      return {i, 1 / static_cast<double>(1 + passed)};
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

// Returns how many of a killed thread's functions, counted from the innermost, had sent messages to other nodes since
// they were entered, but had changed no file. What they had begun is half done on the other nodes. Functions are passed
// over if their entry is not recorded.
std::size_t changed_others_only(const Run& run, const Kinds& kinds, std::int32_t tid, std::int64_t at_ns,
                                const std::vector<const schedule::Frame*>& frames) {
  std::int64_t file_ns = 0, sent_ns = 0;                  // the last change of a file, and the last message
  std::unordered_map<std::string, std::int64_t> entered;  // by key of the function: the last entry
  for (const Step& step : run.steps) {
    if (step.ts_ns >= at_ns) break;
    if (step.tid != tid) continue;
    const Kind& kind = kinds[step.kind];
    if (kind.what == StepKind::call && kind.changes_file) file_ns = step.ts_ns;
    if (kind.what == StepKind::sent) sent_ns = step.ts_ns;
    if (kind.what == StepKind::function) entered[key_of(kind.function)] = step.ts_ns;
  }
  std::size_t out = 0;
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (const auto own = entered.find(key_of(frames[i]->function));
        own != entered.end() && own->second > file_ns && own->second < sent_ns)
      out = i + 1;
  return out;
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

// The feature that the functions on this stack of a run get. `waits`: the thread only waited.
Feature said_by(const Input& input, const schedule::FaultOutcome& fault, const schedule::Stack& stack, bool waits) {
  const schedule::Fault* planned = input.schedule.find(fault.id);
  if (planned != nullptr && planned->kind == schedule::FaultKind::partition) return Feature::waiting;
  if (met_later(planned)) return Feature::arrived;
  // If a fault hits a whole process, the threads that only wait are hit, too.
  const bool by_time = comes_by_time(input, fault.id);
  if (waits && (by_time || (stack.tid != 0 && stack.tid != thread_of(fault)))) return Feature::waiting;
  // A crash at a given time interrupts every thread that does not only wait.
  const bool crash = planned != nullptr && planned->kind == schedule::FaultKind::crash;
  return crash && by_time && !waits ? Feature::interrupted : Feature::arrived;
}

// True if the fault made a sending call fail on a connection that the other side opened. The call would have sent an
// answer, or data to which the client had subscribed. The sender can do little but close the connection, as it does
// when a client leaves. The client, however, does not know whether its request was carried out. The side that opened a
// connection has a port of the range from which Linux chooses by default (net.ipv4.ip_local_port_range).
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

}  // namespace

std::vector<const schedule::Frame*> application(const schedule::Stack& stack, std::size_t most) {
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

bool comes_by_time(const Input& input, const std::string& id) {
  const schedule::Fault* fault = input.schedule.find(id);
  if (fault == nullptr || fault->before || fault->kind == schedule::FaultKind::syscall ||
      fault->kind == schedule::FaultKind::exception)
    return false;
  return std::all_of(fault->when.begin(), fault->when.end(),
                     [](const schedule::Condition& one) { return one.kind == schedule::ConditionKind::elapsed; });
}

std::int32_t thread_of(const schedule::FaultOutcome& fault) {
  for (auto condition = fault.conditions.rbegin(); condition != fault.conditions.rend(); ++condition)
    if (condition->tid != 0 && !condition->node.empty() && (condition->node == fault.node || fault.node.empty()))
      return condition->tid;
  return fault.tid;
}

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
        const bool waits = only_waits(run, input.kinds, *fault, stack);
        const Feature feature = said_by(input, *fault, stack, waits);
        const schedule::Fault* planned = input.schedule.find(fault->id);
        // A thread that only waited when its process was killed had nothing to finish, and can do nothing more.
        const bool ended_waiting = feature == Feature::waiting && planned != nullptr &&
                                   planned->kind == schedule::FaultKind::crash && planned->signal == SIGKILL;
        const bool broken_off = feature == Feature::interrupted;
        const std::vector<const schedule::Frame*> frames =
            application(stack, broken_off ? stack.frames.size() : kMostFrames);
        const std::vector<double> shares = shares_of(frames.size(), broken_off);
        any_broken_off = any_broken_off || broken_off;
        const std::int32_t tid = thread_in(*fault, stack);
        const std::int64_t at_ns = run.zero_ns + (met_later(planned) ? stack.ns : fault->fired_ns);
        if (planned != nullptr && planned->kind == schedule::FaultKind::crash && !waits) {
          const std::size_t elsewhere =
              planned->signal == SIGKILL ? changed_others_only(run, input.kinds, tid, at_ns, frames) : 0;
          for (std::size_t i = 0; i < elsewhere; ++i) here[frames[i]->function][Feature::elsewhere] = 1;
          if (const HalfDone half = half_done(input, run, tid, at_ns, frames);
              half.share > 0 && half.frame >= elsewhere)
            here[frames[half.frame]->function][Feature::half_done] = half.share;
        }
        std::vector<bool> left(frames.size());
        if (const std::size_t catcher = caught(run, input.kinds, tid, at_ns, frames, left); catcher < frames.size())
          here[frames[catcher]->function][Feature::caught] = 1;
        for (std::size_t i = 0; i < frames.size(); ++i) {
          const schedule::Frame& frame = *frames[i];
          if (left[i]) here[frame.function][Feature::passed_on] = 1;
          double& share = here[frame.function][feature];
          share = std::max(share, shares[i] * (ended_waiting ? kEndedWaiting : 1));
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
    if (on.values.contains(Feature::elsewhere))
      reason += "; it had changed no file since it was entered, only sent messages to other nodes";
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
    // The client learns of the lost answer, because the connection ends, so the error counts as reported.
    evidence.reported = evidence.reported || evidence.features[Feature::answers] > 0;
    evidence.tell(weight, on.node, std::move(reason));
  }
  return known;
}

void from_harmless_stacks(const Input& input, Evidences& out) {
  std::map<std::string, double> seen;  // the values of all runs, added up
  std::size_t runs = 0;
  for (const Run& run : input.runs) {
    if (run.group != Group::near) continue;
    std::map<std::string, double> here;
    for (const schedule::FaultOutcome* fault : fired(run)) {
      for (const schedule::Stack& stack : fault->stacks) {
        if (said_by(input, *fault, stack, only_waits(run, input.kinds, *fault, stack)) != Feature::arrived) continue;
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

void from_results(const Input& input, const Comparison& comparison, std::size_t failing, Evidences& out) {
  const Reporters reporters(input, comparison);
  struct Got {
    double share = 0;  // added up over the runs
    std::string node, by;
  };
  std::map<std::string, Got> got;       // the functions that an error on a stack reached last
  std::set<std::string> passed, outer;  // functions that passed an error on; outer: not the innermost of a stack
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
        // If it is not known what a function returns, either this function or one further out stopped the error.
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
    // The functions further in only passed the error on, so for the program, the fault arrived here.
    if (!one.by.empty() && evidence.features[Feature::arrived] > 0) evidence.features.raise(Feature::arrived, share);
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

}  // namespace rose::explain
