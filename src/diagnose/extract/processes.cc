#include "diagnose/extract/processes.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "diagnose/extract/process_faults.h"
#include "kernel/syscalls.h"
#include "weights/weights.h"

namespace rose::diagnose {
namespace {

// The properties by which the profile distinguishes ends and pauses: node, state, exit status or signal, and whether
// the process is the main process.
using Manner = std::tuple<int, int, int, int>;
using InDump = std::map<Manner, std::uint64_t>;

Manner manner_of(const ProcessEvent& p) {
  const bool exited = p.event->state == ProcessState::exited;
  return {p.node, static_cast<int>(p.event->state), exited ? p.exit_code : p.signal, p.main ? 1 : 0};
}

InDump manners_of(const std::vector<ProcessEvent>& processes) {
  InDump in_dump;
  for (const ProcessEvent& p : processes)
    if ((p.event->flags & trace::kPlanned) == 0) in_dump[manner_of(p)] += p.weight;
  return in_dump;
}

// True if such events are not more frequent in the dump than in the fault-free runs of the profile.
bool profiled(const ProcessEvent& p, const InDump& in_dump, const Given& given, const Times& times) {
  if (!given.inputs.profile || given.inputs.profile->runs <= 0) return false;
  const profile::Profile& profile = *given.inputs.profile;
  std::uint64_t normal = 0;
  for (const profile::ProcessKind& kind : profile.processes) {
    if (kind.node != "*" && kind.node != given.name(p.node)) continue;
    if (kind.state != trace::state_name(p.event->state)) continue;
    const int signal = kind.signal.empty() ? 0 : kernel::signal_number(kind.signal).value_or(-1);
    if (p.event->state == ProcessState::crashed && signal != p.signal) continue;
    if (p.event->state == ProcessState::exited && kind.exit_code != p.exit_code) continue;
    if (p.main_known && kind.main != p.main) continue;
    normal += kind.count;
  }
  const double expected = std::ceil(static_cast<double>(normal) / profile.runs) * times.runs_in_window(profile);
  return normal > 0 &&
         static_cast<double>(in_dump.at(manner_of(p))) <= expected * (expected >= kManyEnds ? kMoreByChance : 1);
}

// True if the process ended in an orderly way, as after `systemctl stop`.
bool orderly(const ProcessEvent& p) {
  if (p.event->state == ProcessState::crashed) return p.signal == 15 || p.signal == 2;
  return p.event->state == ProcessState::exited &&
         (p.exit_code == 0 || p.exit_code == 128 + 15 || p.exit_code == 128 + 2);
}

// The time at which all nodes were stopped, for example before the dump was written: each of them (at least two) ended
// in an orderly way within kAllStop, at least one by a signal, and none started again. kNever if that did not happen.
std::int64_t all_stopped(const Given& given, const Facts& facts) {
  std::vector<std::int64_t> last(static_cast<std::size_t>(given.nodes.count()), -1);
  bool signalled = false;
  for (const ProcessEvent& p : facts.processes) {
    if (p.main_known && !p.main) continue;
    if (p.event->state != ProcessState::crashed && p.event->state != ProcessState::exited) continue;
    last[static_cast<std::size_t>(p.node)] = orderly(p) ? p.event->ts_ns : -1;  // later events overwrite earlier ones
    signalled = signalled || (orderly(p) && (p.signal != 0 || p.asked));
  }
  std::int64_t first = kNever;
  std::int64_t end = 0;
  for (int node = 0; node < given.nodes.count(); ++node) {
    if (!given.nodes.watched(node)) continue;
    const std::int64_t ts = last[static_cast<std::size_t>(node)];
    if (ts < 0 || facts.back_after(node, ts) != kNever) return kNever;
    first = std::min(first, ts);
    end = std::max(end, ts);
  }
  const auto stopped = std::count_if(last.begin(), last.end(), [](std::int64_t ts) { return ts >= 0; });
  return signalled && stopped > 1 && end - first <= kAllStop ? first : kNever;
}

struct Sorted {
  ByNode ends, pauses;         // events that may be faults
  std::vector<Cause> planned;  // planned stops
  Discards discards;
};

Sorted classify(const Given& given, const Facts& facts, const Programs& programs) {
  const InDump in_dump = manners_of(facts.processes);
  const std::int64_t stopped = all_stopped(given, facts);
  const auto nodes = static_cast<std::size_t>(given.nodes.count());
  Sorted sorted{ByNode(nodes), ByNode(nodes), {}, {}};
  for (ProcessEvent p : facts.processes) {
    const Event& event = *p.event;
    const bool helper = p.main_known && !p.main;
    p.foreign = !p.main && programs.foreign(p.node, event.pid, event.ts_ns);
    if ((event.flags & trace::kPlanned) != 0) {
      sorted.discards.add("planned: the workload or incident did it with `rose node`", p.weight);
      if (event.state == ProcessState::crashed || event.state == ProcessState::exited)
        sorted.planned.push_back({CauseKind::planned,
                                  p.node,
                                  {},
                                  event.ts_ns,
                                  facts.back_after(p.node, event.ts_ns),
                                  fmt::format("the planned stop of {}", given.name(p.node))});
      continue;
    }
    if (event.ts_ns >= stopped && orderly(p)) {
      sorted.discards.add("the whole deployment was stopped normally at the end of the dump", p.weight);
      sorted.planned.push_back(
          {CauseKind::planned, p.node, {}, event.ts_ns, kNever, fmt::format("the stop of {}", given.name(p.node))});
      continue;
    }
    if (profiled(p, in_dump, given, facts.times)) {
      sorted.discards.add("benign: the profile contains such ends or pauses as often", p.weight);
      continue;
    }
    switch (event.state) {
      case ProcessState::paused: sorted.pauses[static_cast<std::size_t>(p.node)].push_back(p); break;
      case ProcessState::crashed:
        if (p.signal == 0) p.signal = 9;  // imported dumps may lack the signal
        if (helper && p.signal == 13) {
          sorted.discards.add("a helper process of a node ended", p.weight);
          break;
        }
        sorted.ends[static_cast<std::size_t>(p.node)].push_back(p);
        break;
      case ProcessState::exited:
        // A main process that was asked to end was stopped from outside, whatever its exit status is, and the bug may
        // be in the way it ends. Helpers do not count, because their own node asks them to end.
        if (p.exit_code == 0 && (helper || !p.asked)) {
          sorted.discards.add("benign: processes that ended with status 0", p.weight);
        } else if (helper) {
          sorted.discards.add("a helper process of a node ended", p.weight);
        } else {
          // A shell exits with 128 + signal if its command was killed.
          if (p.exit_code == 128 + 9 || p.exit_code == 128 + 15) p.signal = p.exit_code - 128;
          else if (p.asked) p.signal = SIGTERM;  // the usual request to end
          sorted.ends[static_cast<std::size_t>(p.node)].push_back(p);
        }
        break;
      case ProcessState::none:
      case ProcessState::started: sorted.discards.add("process events without a state", p.weight); break;
    }
  }
  return sorted;
}

}  // namespace

Processes extract_processes(const Given& given, const Facts& facts, const Programs& programs) {
  Sorted sorted = classify(given, facts, programs);
  std::vector<ProcessFaults> crashes = crash_faults(given, facts, std::move(sorted.ends));
  std::vector<ProcessFaults> pauses = pause_faults(given, facts, sorted.pauses);
  Processes processes{{{}, std::move(sorted.discards), {}}, std::move(sorted.planned), {}};
  const auto take = [&](ProcessFaults& of) {
    std::move(of.extracted.candidates.begin(), of.extracted.candidates.end(),
              std::back_inserter(processes.extracted.candidates));
    std::move(of.causes.begin(), of.causes.end(), std::back_inserter(processes.causes));
    processes.extracted.discards.add(of.extracted.discards);
  };
  for (std::size_t node = 0; node < crashes.size(); ++node) {
    if (crashes[node].came_back) processes.came_back.insert(static_cast<int>(node));
    take(crashes[node]);
    take(pauses[node]);
  }
  return processes;
}

}  // namespace rose::diagnose
