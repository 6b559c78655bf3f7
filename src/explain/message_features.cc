// Adds the features of functions that react to a request to end, to late messages or to missing messages, and of
// functions that are entered before the fault.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>
#include <set>
#include <unordered_map>

#include "explain/evidences.h"
#include "explain/function_names.h"

namespace rose::explain {
namespace {

constexpr std::size_t kMostEntered = 4;
// Factors for functions that the thread entered before the fault: kEnteredBefore is applied once for each step further
// back, and kByChance if the fault was injected at a given time.
constexpr double kEnteredBefore = 0.75, kByChance = 0.3;
constexpr double kLeastReceived = 0.5;  // after a message, functions count until their share is below this

// True if the fault asks a process to end by a signal that the process may catch.
bool asks_to_end(const schedule::Fault* planned) {
  return planned != nullptr && planned->kind == schedule::FaultKind::crash && planned->signal != SIGKILL;
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

}  // namespace

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
      std::set<std::int32_t> asked;  // processes of the node that were running when the fault came
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
    // for each thread that has received a message: the share that its next function gets
    std::unordered_map<std::int32_t, double> next;
    for (const Step& step : run.steps) {
      if (step.ts_ns > run.cut_ns) break;
      const Kind& kind = input.kinds[step.kind];
      if (kind.what == StepKind::taken && !run.exchanged[step.source].is_end()) {
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

void from_late_messages(const Input& input, std::size_t failing, Evidences& out) {
  constexpr std::size_t kMostLate = 8;  // messages after each fault; later messages are handled as usual
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
      // for each thread that has received a late message: the share that its next function gets
      std::map<std::int32_t, double> handling;
      std::size_t messages = 0;
      double first = 1;
      for (const Step& step : run.steps) {
        if (step.ts_ns < end) continue;
        const Kind& kind = input.kinds[step.kind];
        if (kind.what == StepKind::taken) {
          const Exchanged& message = run.exchanged[step.source];
          const bool late = !message.is_end() && messages < kMostLate && silent->between(message.from, message.to);
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
    // A node cannot know that it was paused. A node can know that it was cut off, and may have taken this into account.
    const Feature feature = paused ? Feature::late : Feature::receives;
    evidence.features.raise(feature, of.share / static_cast<double>(failing));
    evidence.tell(0.3 * evidence.features[feature], of.node, "it handles a message that comes late, after the fault");
  }
}

void from_ends(const Input& input, std::size_t failing, Evidences& out) {
  // The value of the function that noticed the end. It is often a helper that reads from all connections.
  constexpr double kReader = 0.7;
  constexpr std::size_t kMostEnds = 16;  // connections; later ends are likely to have other reasons
  struct Handled {
    double share = 0;  // added up over the runs
    std::string node, of;
  };
  std::map<std::string, Handled> handled;  // by function
  for (const Run& run : input.runs) {
    if (run.group != Group::failing || run.exchanged.empty()) continue;
    std::map<std::string, Handled> here;
    for (const schedule::FaultOutcome* outcome : fired(run)) {
      const std::optional<Silenced> silent = silenced_by(input, *outcome);
      if (!silent) continue;
      // for each thread that has noticed the end of a connection: the share that its next function gets
      std::map<std::int32_t, std::pair<double, std::string>> handling;
      std::size_t ends = 0;
      for (const Step& step : run.steps) {
        if (step.ts_ns < run.zero_ns + outcome->fired_ns) continue;
        const Kind& kind = input.kinds[step.kind];
        if (kind.what == StepKind::taken) {
          const Exchanged& message = run.exchanged[step.source];
          handling.erase(step.tid);
          if (message.is_end() && ends < kMostEnds && silent->between(message.from, message.to)) {
            ++ends;
            handling.emplace(step.tid, std::pair(1.0, message.from));
            // The function that read from the connection may take what it has read for complete.
            if (step.in != kNoKind)
              if (Handled& reader = here[input.kinds[step.in].function]; reader.share < kReader)
                reader = {kReader, kind.node, message.from};
          } else if (ends >= kMostEnds && handling.empty()) break;
        }
        const auto by = handling.find(step.tid);
        if (kind.what != StepKind::function || by == handling.end()) continue;
        Handled& known = here[kind.function];
        known.node = kind.node;
        known.of = by->second.second;
        known.share = std::max(known.share, by->second.first);
        if ((by->second.first *= kOuter) < kLeastReceived) handling.erase(by);
      }
    }
    for (const auto& [function, of] : here) {
      Handled& all = handled[function];
      all.share += of.share;
      all.node = of.node;
      all.of = of.of;
    }
  }
  for (const auto& [function, of] : handled) {
    Evidence& evidence = out[function];
    evidence.features.raise(Feature::ended, of.share / static_cast<double>(failing));
    evidence.tell(0.5 * evidence.features[Feature::ended], of.node,
                  fmt::format("it is executed when a connection to {} has ended because of the fault", of.of));
  }
}

}  // namespace rose::explain
