// Which functions to look at: those on the stack where the fault fired, those that the faulted thread had entered, and those by
// which failing runs differ from sound ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "explain/explain.h"
#include "explain/function_names.h"
#include "symbols/go_library.h"
#include "symbols/interpreters.h"

namespace rose::explain {
namespace {

constexpr double kInnermost = 0.9, kOuter = 0.82;       // of a stack: the innermost frame, and each further one times that
constexpr double kEntered = 0.6, kEnteredBefore = 0.75;  // of functions that the thread entered before the fault, where no stack is known
constexpr std::size_t kMostEntered = 4, kMostFrames = 12;
constexpr double kInside = 0.6, kSuccession = 0.5;       // of a difference that happens in the function, or just behind it
constexpr double kByChance = 0.3;                        // of where a thread only waited, or what it had entered, when a fault came at its time
constexpr double kCutOff = 0.6;                          // of where a thread waits for a node that is cut off: as sound runs do at times
constexpr double kHarmlessToo = 0.7;                     // of what the fault brings without the bug, too, where something comes with the bug alone
constexpr double kAnswer = 0.75;                         // of what comes of an error: it is returned to those on the stack, and they do that
constexpr double kPassesOn = 0.8;                        // of a method that an exception only comes through, and that its caller leaves by it, too
constexpr double kDead = 0.5;                            // what a process that was killed no longer does tells little

constexpr std::int64_t kOneException = 200'000;          // ns, from one method that it leaves to the next

struct Evidence {
  double stack = 0, difference = 0, around = 0;
  std::map<double, std::string, std::greater<>> why;  // the heaviest reason first
  std::set<std::string> nodes;
  std::string name, file;
  int line = 0;
  bool fresh = false;

  void add(double Evidence::*part, double weight, const std::string& node, std::string reason) {
    if (weight <= 0) return;
    this->*part = std::max(this->*part, weight);
    if (!node.empty()) nodes.insert(node);
    tell(weight, std::move(reason));
  }
  void tell(double weight, std::string reason) {
    if (std::none_of(why.begin(), why.end(), [&](const auto& one) { return one.second == reason; })) why.emplace(weight, std::move(reason));
  }
};

class Evidences {
 public:
  Evidence& operator[](const std::string& function) {
    Evidence& evidence = all_[key_of(function)];
    if (function.size() > evidence.name.size()) evidence.name = function;  // the fullest form of the name
    return evidence;
  }
  [[nodiscard]] const std::map<std::string, Evidence>& all() const { return all_; }

 private:
  std::map<std::string, Evidence> all_;
};

std::string times(std::size_t have, std::size_t all) { return have == all ? fmt::format("all {}", all) : fmt::format("{} of {}", have, all); }

// The application's frames, innermost first, each function once.
std::vector<const schedule::Frame*> application(const schedule::Stack& stack) {
  std::vector<const schedule::Frame*> out;
  for (const schedule::Frame& frame : stack.frames) {
    if (frame.function.empty() || is_library(frame)) continue;
    if (std::any_of(out.begin(), out.end(), [&](const auto* seen) { return seen->function == frame.function; })) continue;
    out.push_back(&frame);
    if (out.size() == kMostFrames) break;
  }
  return out;
}

// A fault that waits for no step hits whatever is going on.
bool comes_by_time(const Input& input, const std::string& id) {
  const schedule::Fault* fault = input.schedule.find(id);
  if (fault == nullptr || fault->before || fault->kind == schedule::FaultKind::syscall || fault->kind == schedule::FaultKind::exception) return false;
  return std::all_of(fault->when.begin(), fault->when.end(), [](const schedule::Condition& one) { return one.kind == schedule::ConditionKind::elapsed; });
}

// A call or method that fails, and where is known.
bool fails_in_sight(const Input& input) {
  return std::any_of(input.runs.begin(), input.runs.end(), [&](const Run& run) {
    const auto faults = fired(run);
    if (run.group != Group::failing || faults.empty()) return false;
    const schedule::Fault* first = input.schedule.find(faults.front()->id);
    if (first == nullptr || (first->kind != schedule::FaultKind::syscall && first->kind != schedule::FaultKind::exception)) return false;
    return std::any_of(faults.front()->stacks.begin(), faults.front()->stacks.end(), [](const auto& stack) { return !application(stack).empty(); });
  });
}

// A server that has nothing to do.
bool waits(const schedule::Stack& stack) {
  for (const schedule::Frame& frame : stack.frames) {
    if (!is_library(frame)) return false;
    if (frame.function.find("futex") != std::string::npos || frame.function.find("pthread_cond_") != std::string::npos) return true;
    for (const std::string_view name : {"poll", "epoll_wait", "epoll_pwait", "select", "accept", "accept4", "runtime.gopark", "runtime.netpoll", "runtime.futex"})
      if (frame.function == name || (frame.function.starts_with("__") && frame.function.ends_with(name))) return true;
  }
  return false;
}

// The thread that a fault hit: of those that hit a whole process, the one that met a condition of it last.
std::int32_t thread_of(const schedule::FaultOutcome& fault) {
  for (auto condition = fault.conditions.rbegin(); condition != fault.conditions.rend(); ++condition)
    if (condition->tid != 0 && !condition->node.empty() && (condition->node == fault.node || fault.node.empty())) return condition->tid;
  return fault.tid;
}

struct OnStack {
  std::size_t runs = 0, innermost = 0;
  double weight = 0;  // added up over the runs
  std::string node, why, called;
};

void from_stacks(const Input& input, std::size_t failing, Evidences& out) {
  std::map<std::string, OnStack> seen;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    std::map<std::string, std::pair<double, bool>> here;  // of this run: the best weight, and whether it is innermost
    for (const schedule::FaultOutcome* fault : fired(run)) {
      for (const schedule::Stack& stack : fault->stacks) {
        // Of a process that is hit as a whole, threads that only wait, too.
        const bool idle = waits(stack) && (comes_by_time(input, fault->id) || (stack.tid != 0 && stack.tid != thread_of(*fault)));
        const schedule::Fault* kind = input.schedule.find(fault->id);
        const bool cut = kind != nullptr && kind->kind == schedule::FaultKind::partition;
        double weight = kInnermost * (cut ? kCutOff : idle ? kByChance : 1);
        const std::vector<const schedule::Frame*> frames = application(stack);
        for (std::size_t i = 0; i < frames.size(); ++i, weight *= kOuter) {
          const schedule::Frame& frame = *frames[i];
          const double own = is_base(frame.function) ? weight * kBase : weight;
          auto& best = here[frame.function];
          best = {std::max(best.first, own), best.second || i == 0};
          OnStack& on = seen[frame.function];
          on.node = stack.node.empty() ? fault->node : stack.node;
          if (on.why.empty()) on.why = stack.why.empty() ? fault->detail : stack.why;
          if (i > 0 && on.called.empty()) on.called = frames[i - 1]->function;
          Evidence& evidence = out[frame.function];
          if (evidence.file.empty()) evidence.file = frame.file, evidence.line = frame.line;
        }
      }
    }
    for (const auto& [function, best] : here) {
      OnStack& on = seen[function];
      ++on.runs;
      on.innermost += best.second ? 1 : 0;
      on.weight += best.first;
    }
  }
  for (const auto& [function, on] : seen) {
    std::string reason = on.innermost == on.runs
                             ? fmt::format("the fault arrived in it in {} failing runs", times(on.runs, failing))
                             : fmt::format("it was being executed when the fault arrived, in {} failing runs", times(on.runs, failing));
    if (on.innermost != on.runs && !on.called.empty()) reason += fmt::format(": it had called {}", on.called);
    if (!on.why.empty()) reason += fmt::format(" ({})", on.why);
    out[function].add(&Evidence::stack, on.weight / static_cast<double>(failing), on.node, std::move(reason));
  }
}

// A limit of memory hits who wants the page that is one too many, when it wants it.
const Step* killed_by(const Input& input, const Run& run, const schedule::FaultOutcome& fault) {
  const schedule::Fault* planned = input.schedule.find(fault.id);
  if (planned == nullptr || planned->kind != schedule::FaultKind::memory) return nullptr;
  for (const Step& step : run.steps) {
    const Kind& kind = input.kinds[step.kind];
    if (step.ts_ns >= run.zero_ns + fault.fired_ns && kind.out_of_memory && (kind.node.empty() || kind.node == fault.node)) return &step;
  }
  return nullptr;
}

// Without a stack: what the thread had entered last, or the process that died of it. It may have returned from that.
void from_entries(const Input& input, std::size_t failing, Evidences& out) {
  struct Entered {
    double weight = 0;
    std::size_t runs = 0;
    bool last = false, killed = false;
    std::string node;
  };
  std::map<std::string, Entered> seen;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    std::set<std::string> here;
    for (const schedule::FaultOutcome* fault : fired(run)) {
      if (std::any_of(fault->stacks.begin(), fault->stacks.end(), [](const auto& stack) { return !application(stack).empty(); })) continue;
      const std::int32_t tid = thread_of(*fault);
      const Step* killed = killed_by(input, run, *fault);
      const std::int64_t at = killed != nullptr ? killed->ts_ns : run.zero_ns + fault->fired_ns;
      double weight = kEntered * (killed == nullptr && comes_by_time(input, fault->id) ? kByChance : 1);
      std::size_t count = 0;
      std::set<std::string> of_fault;
      for (auto step = run.steps.rbegin(); step != run.steps.rend() && count < kMostEntered; ++step) {
        const Kind& kind = input.kinds[step->kind];
        if (step->ts_ns > at || kind.what != StepKind::function) continue;
        if (killed != nullptr ? step->pid != killed->pid : tid != 0 ? step->tid != tid : fault->node.empty() || kind.node != fault->node) continue;
        if (!of_fault.insert(kind.function).second) continue;
        Entered& entered = seen[kind.function];
        if (here.insert(kind.function).second) ++entered.runs, entered.weight += is_base(kind.function) ? weight * kBase : weight;
        entered.last = entered.last || count == 0;
        entered.killed = entered.killed || killed != nullptr;
        entered.node = kind.node;
        weight *= kEnteredBefore;
        ++count;
      }
    }
  }
  for (const auto& [function, entered] : seen)
    out[function].add(&Evidence::stack, entered.weight / static_cast<double>(failing), entered.node,
                      fmt::format("{} before {}, in {} failing runs (no stack is known)",
                                  entered.last ? "the last watched function that was entered" : "entered shortly",
                                  entered.killed ? "the kernel ended the process for its memory" : "the fault arrived", times(entered.runs, failing)));
}

std::string of_runs(double share, std::size_t runs) { return fmt::format("{} of {}", static_cast<long>(share * static_cast<double>(runs) + 0.5), runs); }

std::string counted(const Difference& d, const Comparison&, std::size_t failing, std::size_t sound, std::size_t near) {
  std::string out = fmt::format("{} failing and {} sound runs", of_runs(d.failing, failing), of_runs(d.sound, sound));
  if (near > 0) out += fmt::format(", {} with the fault but without the bug", of_runs(d.near, near));
  if (d.needless > 0) out += ", but the bug shows without it where the fault lasts less";
  return out;
}

// A stack trace in a message that tells the runs apart: the program says itself where it was.
void from_trace(const Input& input, const Difference& d, double weight, const std::string& runs, Evidences& out) {
  const std::int64_t cut = input.runs[input.story_run].cut_ns;
  const auto line = std::find_if(input.lines.begin(), input.lines.end(), [&](const LogLine& one) {
    return !one.frames.empty() && one.ts_ns > cut && one.kind == input.kinds[d.kind].message && (input.kinds[d.kind].node.empty() || one.node == input.kinds[d.kind].node);
  });
  if (line == input.lines.end()) return;
  std::size_t told = 0;
  for (const schedule::Frame& frame : line->frames) {
    if (is_library(frame)) continue;
    if (told++ == kMostFrames) break;
    Evidence& evidence = out[frame.function];
    if (evidence.file.empty()) evidence.file = frame.file, evidence.line = frame.line;
    evidence.add(&Evidence::difference, is_base(frame.function) ? weight * kBase : weight, line->node,
                 fmt::format("{} a stack trace that is logged in {} ({})", told == 1 ? "the innermost of" : "in", runs, line->place));
    weight *= kOuter;
  }
}

// Of methods of Java that one exception leaves, the outermost: what was broken off as a whole, and may be half done.
std::set<std::uint32_t> broken_off(const Input& input) {
  std::set<std::uint32_t> out;
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    std::map<std::int32_t, const Step*> last;  // by thread: who was left last, where that was by an exception
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

void from_differences(const Input& input, const Comparison& comparison, Evidences& out) {
  const auto amount = [&](Group group) {
    return static_cast<std::size_t>(std::count_if(input.runs.begin(), input.runs.end(), [&](const Run& run) { return run.group == group; }));
  };
  const std::size_t failing = amount(Group::failing), sound = amount(Group::sound), near = amount(Group::near);
  std::vector<const Difference*> in_order;
  for (const Difference& d : comparison.differences) in_order.push_back(&d);
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto* a, const auto* b) { return a->after_ns < b->after_ns; });
  const bool killed = std::any_of(input.schedule.faults.begin(), input.schedule.faults.end(),
                                  [](const schedule::Fault& fault) { return fault.kind == schedule::FaultKind::crash; });
  // That only failing runs enter a function says all that is said by what comes in it or behind it.
  std::set<std::string> entered_anew;
  for (const Difference& d : comparison.differences)
    if (const Kind& kind = input.kinds[d.kind]; kind.what == StepKind::function && d.next == kNoKind && d.clean && !d.missing) entered_anew.insert(kind.function);
  const auto around = [&](const std::string& function, double weight, const std::string& node, std::string reason) {
    if (entered_anew.contains(function)) out[function].tell(weight, std::move(reason));
    else out[function].add(&Evidence::around, weight, node, std::move(reason));
  };
  const bool bug_alone = std::any_of(comparison.differences.begin(), comparison.differences.end(), [](const Difference& d) { return d.only_bug; });
  const double answer = fails_in_sight(input) ? kAnswer : 1;
  const std::set<std::uint32_t> outermost = broken_off(input);
  // Differences that come first are nearer to the cause; of what only the bug has, those of its kind.
  double before = 0, before_of_bug = 0;
  for (const Difference* d : in_order) {
    const Kind& kind = input.kinds[d->kind];
    const double own = d->weight * 0.95 * (d->missing && killed ? kDead : 1) * (bug_alone && d->harmless ? kHarmlessToo : 1);
    const double weight = own * answer / (1 + 0.05 * (d->only_bug ? before_of_bug : before));
    const std::string runs = counted(*d, comparison, failing, sound, near);
    if (d->next != kNoKind) {
      const Kind& next = input.kinds[d->next];
      if (kind.what == StepKind::function)
        around(kind.function, weight * kSuccession, kind.node,
               fmt::format("what its thread does next is another: {}{} in {}", d->missing ? "no longer " : "", next.words, runs));
      continue;
    }
    before += 1;
    before_of_bug += d->only_bug ? 1 : 0;
    // The program says itself where it was, whatever else came before.
    if (kind.what == StepKind::message && !d->missing) from_trace(input, *d, own, runs, out);
    if (kind.what == StepKind::function) {
      if (d->clean && !d->missing && (d->only_bug || near == 0 || !bug_alone)) out[kind.function].fresh = true;
      out[kind.function].add(&Evidence::difference, weight, kind.node,
                             fmt::format("{} after the fault in {}", d->missing ? "no longer entered" : "entered", runs));
    } else if (kind.what == StepKind::thrown) {
      const std::string_view exception = std::string_view(kind.words).substr(kind.words.rfind(' ') + 1);
      const bool broken = outermost.contains(d->kind) && !d->missing;
      out[kind.function].add(&Evidence::difference, broken ? own * answer : weight * kPassesOn, kind.node,
                             fmt::format("{} by {} after the fault in {}", d->missing ? "no longer left" : "left", exception, runs));
    } else if (kind.what == StepKind::value) {
      if (!kind.function.empty())
        out[kind.function].add(&Evidence::difference, weight, kind.node, fmt::format("{}{} after the fault in {}", d->missing ? "no longer: " : "", kind.words, runs));
    } else if (d->in != kNoKind) {
      const Kind& in = input.kinds[d->in];
      around(in.function, weight * kInside, in.node, fmt::format("behind its entry: {}{} in {}", d->missing ? "no longer " : "", kind.words, runs));
    }
  }
  for (const Swapped& swap : comparison.orders) {
    const auto accuse = [&](std::uint32_t id, double share) {
      const Kind& kind = input.kinds[id];
      if (kind.what == StepKind::function)
        out[kind.function].add(&Evidence::around, swap.weight * share, kind.node, fmt::format("in all failing runs, and in no sound one: {}", order_words(input, swap)));
    };
    accuse(swap.late, kInside);
    if (swap.in != kNoKind) accuse(swap.in, kSuccession);
  }
}

}  // namespace

bool is_library(const schedule::Frame& frame) {
  const auto begins = [](std::string_view text, std::initializer_list<std::string_view> with) {
    return std::any_of(with.begin(), with.end(), [&](std::string_view one) { return text.starts_with(one); });
  };
  if (frame.module == "[vdso]" || frame.module == "[vsyscall]" || schedule::of_jdk(frame)) return true;
  const std::string_view module = frame.module;
  if (begins(module, {"/usr/lib/jvm/", "/opt/java/"})) return true;  // the JVM and what starts it
  if (symbols::interprets(module)) return true;
  const std::string_view name = module.substr(module.rfind('/') + 1);
  // Only what lies in the system's folders: an application may have a "libc.so" of its own.
  if (begins(module, {"/lib", "/usr/lib"}) &&
      begins(name, {"libc.", "libc-", "libpthread", "ld-linux", "libstdc++", "libgcc_s", "libm.", "libm-", "libjava", "libnio", "libnet",
                    "librt.", "librt-", "libdl.", "libasan", "libtsan"}))
    return true;
  if (symbols::of_go_library(frame.function, frame.file)) return true;
  if (begins(frame.file, {"/usr/include/", "/usr/lib/", "/usr/src/", "/usr/local/go/", "/rustc/", "../sysdeps/", "./nptl/", "./csu/", "./io/", "./misc/"}))
    return true;
  if (begins(frame.function, {"std::", "core::", "alloc::", "<std::", "<core::", "<alloc::", "__gnu_cxx::", "__libc_", "__GI_", "_start", "__clone"})) return true;
  for (const std::string_view whole : {"clone", "clone3", "start_thread"})
    if (frame.function == whole) return true;
  // Go's packages, unless the source is of another language: Java's packages may begin with "io.", too.
  const bool may_be_go = frame.file.empty() || frame.file.ends_with(".go") || frame.file.ends_with(".s");
  return may_be_go && begins(frame.function, {"runtime.", "runtime/", "syscall.", "internal/", "os.", "sync.", "net.", "net/http", "bufio.", "io.", "fmt."});
}

std::vector<Suspect> suspects_of(const Input& input, const Comparison& comparison) {
  const auto failing = static_cast<std::size_t>(
      std::count_if(input.runs.begin(), input.runs.end(), [](const Run& run) { return run.group == Group::failing && !fired(run).empty(); }));
  if (failing == 0) return {};
  Evidences evidences;
  from_stacks(input, failing, evidences);
  from_entries(input, failing, evidences);
  from_differences(input, comparison, evidences);
  std::vector<Suspect> out;
  for (const auto& [key, evidence] : evidences.all()) {
    Suspect suspect;
    suspect.function = evidence.name;
    suspect.score = 1 - (1 - evidence.stack) * (1 - evidence.difference) * (1 - evidence.around);
    if (suspect.score <= 0) continue;
    if (evidence.nodes.size() == 1) suspect.node = *evidence.nodes.begin();
    suspect.fresh = evidence.fresh;
    suspect.arrived = evidence.stack;
    suspect.file = evidence.file;
    suspect.line = evidence.line;
    if (suspect.file.empty() && input.place && !evidence.nodes.empty()) {
      const Place place = input.place(*evidence.nodes.begin(), evidence.name);
      suspect.file = place.file;
      suspect.line = place.line;
    }
    schedule::Frame frame;
    frame.function = suspect.function;
    frame.file = suspect.file;
    if (is_library(frame)) continue;  // it does what it is called for
    std::size_t reasons = 0;
    for (const auto& [weight, reason] : evidence.why) {
      if (++reasons > 3) break;
      suspect.why += (suspect.why.empty() ? "" : "; ") + reason;
    }
    out.push_back(std::move(suspect));
  }
  std::stable_sort(out.begin(), out.end(), [](const Suspect& a, const Suspect& b) { return a.score > b.score; });
  if (out.size() > kMostSuspected) out.resize(kMostSuspected);
  return out;
}

}  // namespace rose::explain
