#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/units.h"
#include "diagnose/extract/process_faults.h"
#include "diagnose/words.h"
#include "evidence/forms.h"
#include "evidence/usual.h"
#include "weights/weights.h"

namespace rose::diagnose {
namespace {

struct Pause {
  std::int64_t start = 0, end = 0;
  std::uint64_t weight = 0;
  bool counts = false;   // the pause concerns the node, not only a helper that waits
  bool open = false;     // the pause had not ended when the process ended or the dump was written
  bool partly = false;   // only processes other than the main one were paused
  bool foreign = false;  // the test deployment does not run the programs of the paused processes
  bool blocked = false;  // uninterruptible wait, as for a stuck disk: mostly a consequence of another fault
  const Observation* event = nullptr;
};

// `ends`: timestamps of ends of the node's processes, by pid.
Pause pause_of(const ProcessEvent& p, const std::multimap<std::int32_t, std::int64_t>& ends, const Given& given,
               const Times& times) {
  const auto [first, last] = ends.equal_range(p.event->pid);
  // The end of a process also ended its pause, which might have lasted longer.
  const bool ended = p.event->pid != 0 && std::any_of(first, last, [&](const auto& end) {
                       return std::abs(end.second - p.event->ts_ns) <= kEndsWhilePaused;
                     });
  const bool open = ended || (p.event->flags & trace::kOpen) != 0;
  const std::int64_t length = p.event->duration_ms > 0 ? p.event->duration_ms * kMillisecond : given.pause_threshold();
  const bool blocked = (p.event->flags & trace::kBlocked) != 0;
  // The event of a frozen cgroup has no pid. Like a pause by a signal, such a pause comes from outside, even if it
  // affects only a part of the node.
  const bool frozen = !blocked && p.event->pid == 0;
  Pause pause{p.event->ts_ns - length,
              p.event->ts_ns,
              p.weight,
              !p.main_known || p.main || p.signal != 0 || frozen,
              open,
              p.main_known && !p.main && !frozen,
              p.foreign,
              blocked,
              p.event};
  if (open) pause.end = std::max(pause.end, times.end);
  return pause;
}

// Merges pauses of processes that were paused together.
std::vector<Pause> paused_together(std::vector<Pause> each) {
  std::stable_sort(each.begin(), each.end(), [](const Pause& a, const Pause& b) {
    return std::pair(a.blocked, a.start) < std::pair(b.blocked, b.start);
  });
  std::vector<Pause> found;
  for (const Pause& pause : each) {
    if (!found.empty() && pause.blocked == found.back().blocked && pause.start - found.back().start <= kPauseTogether &&
        pause.start <= found.back().end) {
      found.back().end = std::max(found.back().end, pause.end);
      found.back().weight += pause.weight;
      found.back().counts = found.back().counts || pause.counts;
      found.back().open = found.back().open || pause.open;
      found.back().partly = found.back().partly && pause.partly;
      found.back().foreign = found.back().foreign && pause.foreign;
    } else {
      found.push_back(pause);
    }
  }
  return found;
}

Candidate paused(const Given& given, const Times& times, int node, const Pause& pause, Ids& ids) {
  Fault fault;
  fault.kind = FaultKind::pause;
  fault.node = given.name(node);
  fault.id = ids.next("pause-" + fault.node);
  fault.duration_ns = rounded(pause.end - pause.start);
  Candidate c = candidate_of(std::move(fault), pause.weight, pause.start);
  c.last_ts = pause.end;
  c.blocked = pause.blocked;
  c.foreign = pause.foreign;
  c.why = fmt::format("{}{} {} for {}, from {}{}", pause.partly ? "a process of " : "", c.node,
                      pause.blocked ? "was blocked in uninterruptible wait (as on a slow disk)" : "was paused",
                      format_duration(rounded(pause.end - pause.start)), times.at(pause.start),
                      pause.open ? ", and, as far as the dump shows, did not continue" : "");
  if (pause.partly && !pause.blocked && given.nodes.network_count() > 1) {
    // The rest of the node continued, so to its peers the pause may have looked like a partition.
    Fault& cut = c.alternatives.emplace_back();
    cut.kind = FaultKind::partition;
    cut.node = c.node;
    cut.id = c.fault.id + "-cut";
    cut.duration_ns = c.fault.duration_ns;
  }
  if (pause.open && !pause.blocked) {
    add_unended_duration(c, times, longest_workload(given.config()));
    for (Fault& shape : c.alternatives) shape.duration_ns = 0;  // a partition may last until the end of the run
  }
  set_origin(c, pause.event->how());
  return c;
}

ProcessFaults pauses_of(const Given& given, const Facts& facts, int node, const std::vector<ProcessEvent>& events,
                        Ids& ids) {
  if (events.empty()) return {};
  std::vector<Pause> each;
  std::multimap<std::int32_t, std::int64_t> ends;
  for (const ProcessEvent& p : facts.processes)
    if (p.node == node &&
        (p.event->state == trace::ProcessState::crashed || p.event->state == trace::ProcessState::exited))
      ends.emplace(p.event->pid, p.event->ts_ns);
  for (const ProcessEvent& p : events) each.push_back(pause_of(p, ends, given, facts.times));
  ProcessFaults found;
  std::vector<Candidate>& candidates = found.extracted.candidates;
  std::vector<std::size_t> stopped;  // indexes of pauses that came from outside
  for (const Pause& pause : paused_together(std::move(each))) {
    if (!pause.counts) {
      found.extracted.discards.add("a helper process of a node waited", pause.weight);
      continue;
    }
    if (!pause.blocked) stopped.push_back(candidates.size());
    candidates.push_back(paused(given, facts.times, node, pause, ids));
    found.causes.push_back({CauseKind::paused,
                            node,
                            {},
                            pause.start,
                            pause.end,
                            fmt::format("the pause of {} ({})", given.name(node), facts.times.at(pause.start)),
                            pause.partly,
                            0,
                            pause.event->how().reliability});
  }
  candidates = fold_usual(std::move(candidates), {stopped}, "stood still", facts.times, given.longest_ns);
  return found;
}

}  // namespace

std::vector<ProcessFaults> pause_faults(const Given& given, const Facts& facts, const ByNode& events) {
  Ids ids;
  std::vector<ProcessFaults> found;
  for (std::size_t node = 0; node < events.size(); ++node)
    found.push_back(pauses_of(given, facts, static_cast<int>(node), events[node], ids));
  return found;
}

}  // namespace rose::diagnose
