#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "diagnose/extract/process_faults.h"
#include "diagnose/words.h"
#include "evidence/usual.h"
#include "kernel/syscalls.h"
#include "weights/weights.h"

namespace rose::diagnose {
using schedule::Scope;

namespace {

// True for signals that a process causes itself, such as SIGSEGV.
bool own_signal(int signal) {
  switch (signal) {
    case 4:                // SIGILL
    case 5:                // SIGTRAP
    case 6:                // SIGABRT
    case 7:                // SIGBUS
    case 8:                // SIGFPE
    case 11:               // SIGSEGV
    case 13:               // SIGPIPE
    case 31: return true;  // SIGSYS
    default: return false;
  }
}

// True if another process or the kernel ended the process.
bool outside(const ProcessEvent& p) { return p.signal != 0 && !own_signal(p.signal); }

// The signal that the schedule sends: the observed one if it ends a process by default, otherwise SIGKILL.
int ending_signal(int signal) {
  switch (signal) {
    case 17:  // SIGCHLD
    case 18:  // SIGCONT
    case 19:  // SIGSTOP
    case 20:  // SIGTSTP
    case 21:  // SIGTTIN
    case 22:  // SIGTTOU
    case 23:  // SIGURG
    case 28:  // SIGWINCH
      return 9;
    default: return signal >= 1 && signal <= 31 ? signal : 9;
  }
}

// The spans between the first and last event of each process, if longer than kActiveAfterEnd.
class ActiveSpans {
 public:
  explicit ActiveSpans(const Given& given) : of_(static_cast<std::size_t>(given.nodes.count())) {
    for (std::size_t s = 0; s < given.inputs.sources.size(); ++s)
      for (const Observation& event : given.inputs.sources[s].observations) {
        const int node = event.pid > 0 ? given.nodes.of(s, event) : -1;
        if (node < 0) continue;
        auto& span = of_[static_cast<std::size_t>(node)].try_emplace(event.pid, event.ts_ns, event.ts_ns).first->second;
        span = {std::min(span.first, event.ts_ns), std::max(span.second, event.ts_ns)};
      }
    for (auto& spans : of_)
      std::erase_if(spans,
                    [](const auto& entry) { return entry.second.second - entry.second.first <= kActiveAfterEnd; });
  }

  // True if another process of the node was active before these processes ended, and was still active long afterwards.
  [[nodiscard]] bool continued(int node, std::span<const ProcessEvent> ended) const {
    const auto& spans = of_[static_cast<std::size_t>(node)];
    return std::any_of(spans.begin(), spans.end(), [&](const auto& entry) {
      const auto& [pid, span] = entry;
      return span.first < ended.front().event->ts_ns && span.second > ended.back().event->ts_ns + kActiveAfterEnd &&
             std::none_of(ended.begin(), ended.end(),
                          [pid = pid](const ProcessEvent& p) { return p.event->pid == pid; });
    });
  }

 private:
  // by node and process: timestamps of the first and last event
  std::vector<std::unordered_map<std::int32_t, std::pair<std::int64_t, std::int64_t>>> of_;
};

// Processes of one node that ended within kOneCrash. The leading process determines what kind of end it was.
struct Crash {
  std::span<const ProcessEvent> ended;
  const ProcessEvent* lead = nullptr;
  std::uint64_t weight = 0;  // number of ends

  [[nodiscard]] std::int64_t ts() const { return ended.front().began; }
  // True if the main process is known and continued.
  [[nodiscard]] bool spares_main() const {
    return lead->main_known && std::none_of(ended.begin(), ended.end(), [](const ProcessEvent& e) { return e.main; });
  }
  // True if other processes of the node may have continued, because the main process is unknown (for example, if the
  // dump began after the node had started).
  [[nodiscard]] bool perhaps_partly() const { return !outside(*lead) && !lead->main_known; }
};

std::vector<Crash> ended_together(std::span<const ProcessEvent> ends) {
  std::vector<Crash> crashes;
  while (!ends.empty()) {
    Crash crash;
    crash.lead = &ends.front();
    std::size_t n = 0;
    for (; n < ends.size() && ends[n].began - ends[0].began <= kOneCrash; ++n) {
      crash.weight += ends[n].weight;
      const ProcessEvent& l = *crash.lead;
      const ProcessEvent& p = ends[n];
      const bool lead_crashed = l.event->state == ProcessState::crashed;
      // The main process is the leading process, unless it only reacted to the kill of another process.
      if (p.main && !l.main && (outside(p) || !outside(l))) crash.lead = &p;
      else if (p.main == l.main && outside(p) && !outside(l) && !lead_crashed) crash.lead = &p;
    }
    crash.ended = ends.first(n);
    ends = ends.subspan(n);
    crashes.push_back(crash);
  }
  return crashes;
}

Fault crash_fault(const std::string& node, int signal, Ids& ids) {
  Fault fault;
  fault.kind = FaultKind::crash;
  fault.node = node;
  fault.id = ids.next("crash-" + node);
  fault.signal = ending_signal(signal);
  return fault;
}

// The candidate for an end that came from outside.
Candidate killed(const Given& given, const Times& times, const Crash& crash, Ids& ids) {
  const ProcessEvent& p = *crash.lead;
  const std::string& name = given.name(p.node);
  Fault fault = crash_fault(name, p.signal, ids);
  // If the main process continued, end only the other processes: the bug may be in the way in which the main process
  // handles the end of its workers.
  if (crash.spares_main()) fault.scope = Scope::others;
  Candidate c = candidate_of(std::move(fault), crash.weight, crash.ts());
  c.why = fmt::format("{}{} was ended by {} {}{}", p.main_known && !p.main ? "a process of " : "", name,
                      kernel::signal_name(p.signal), times.at(crash.ts()),
                      crash.ended.size() > 1 ? fmt::format(", {} processes at once", crash.ended.size()) : "");
  c.out_of_memory = (p.event->flags & trace::kOutOfMemory) != 0;
  if (c.out_of_memory) c.why += ", by the kernel's OOM killer";
  else if (p.event->by != 0) c.why += fmt::format(", sent by {}", given.inputs.sources[p.source].str(p.event->by));
  c.foreign = p.foreign;
  set_origin(c, p.event->how());
  return c;
}

Candidate ended_itself(const Given& given, const Times& times, const Crash& crash, const std::string& who, Ids& ids) {
  const ProcessEvent& p = *crash.lead;
  Fault fault = crash_fault(given.name(p.node), p.signal, ids);
  if (crash.spares_main()) fault.scope = Scope::others;
  Candidate c = candidate_of(std::move(fault), crash.weight, crash.ts());
  c.own_end = true;
  c.foreign = p.foreign;
  const std::string at = times.at(crash.ts());
  c.why = p.signal != 0      ? fmt::format("{} ended itself by {} {}", who, kernel::signal_name(p.signal), at)
          : p.exit_code >= 0 ? fmt::format("{} ended itself with status {} {}", who, p.exit_code, at)
                             : fmt::format("{} ended {}; its status is unknown", who, at);
  set_origin(c, p.event->how());
  return c;
}

ProcessFaults crashes_of(const Given& given, const Facts& facts, int node, const std::vector<Crash>& crashes,
                         const std::optional<ActiveSpans>& spans, Ids& ids) {
  ProcessFaults found;
  std::vector<Candidate>& candidates = found.extracted.candidates;
  const std::string& name = given.name(node);
  // by kind of end: index of the candidate of the first such end
  std::map<std::tuple<bool, bool, int, int>, std::size_t> own;
  std::map<std::tuple<bool, int, Scope>, std::vector<std::size_t>> from_outside;
  for (const Crash& crash : crashes) {
    const ProcessEvent& p = *crash.lead;
    const std::int64_t ts = crash.ts();
    const std::int64_t back = facts.back_after(node, ts);
    if (outside(p)) {
      candidates.push_back(killed(given, facts.times, crash, ids));
      from_outside[{p.foreign, p.signal, candidates.back().fault.scope}].push_back(candidates.size() - 1);
      // If the main process continued, later failures of the node are not consequences of this end.
      const bool partly = candidates.back().fault.scope == Scope::others;
      found.causes.push_back(
          {CauseKind::killed,
           node,
           {},
           ts,
           back,
           fmt::format("the crash of {}{} ({})", partly ? "a process of " : "", name, facts.times.at(ts)),
           partly,
           // if the process exited: it may have used its disk until then
           p.event->state == ProcessState::exited ? p.event->ts_ns : 0,
           p.event->how().reliability,
           !p.main_known});
      if (back < kNever && !given.config().nodes[static_cast<std::size_t>(node)].restart) found.came_back = true;
      continue;
    }
    const bool partly = crash.spares_main() || (crash.perhaps_partly() && spans->continued(node, crash.ended));
    const std::string who = (partly ? "a process of " : "") + name;
    found.causes.push_back({CauseKind::ended_itself,
                            node,
                            {},
                            ts,
                            back,
                            fmt::format("the end of {} ({})", who, facts.times.at(ts)),
                            partly,
                            p.event->ts_ns,
                            p.event->how().reliability,
                            !p.main_known});
    const auto [known, fresh] = own.try_emplace({p.foreign, p.signal != 0, p.signal, p.exit_code}, candidates.size());
    if (fresh) {
      candidates.push_back(ended_itself(given, facts.times, crash, who, ids));
      candidates.back().partly = partly;
    } else {
      candidates[known->second].count += crash.weight;
      candidates[known->second].last_ts = ts;
    }
  }
  std::vector<std::vector<std::size_t>> alike;
  for (auto& [kind, which] : from_outside) alike.push_back(std::move(which));
  candidates = fold_usual(std::move(candidates), alike, "ended", facts.times, given.longest_ns);
  return found;
}

}  // namespace

std::vector<ProcessFaults> crash_faults(const Given& given, const Facts& facts, ByNode ends) {
  // Processes of programs that the test deployment does not run are grouped separately.
  std::vector<std::vector<Crash>> all;
  bool perhaps_partly = false;
  for (std::vector<ProcessEvent>& of : ends) {
    const auto foreign = std::stable_partition(of.begin(), of.end(), [](const ProcessEvent& p) { return !p.foreign; });
    const auto own = static_cast<std::size_t>(foreign - of.begin());
    const std::span<const ProcessEvent> list(of);
    std::vector<Crash>& crashes = all.emplace_back(ended_together(list.first(own)));
    for (Crash& crash : ended_together(list.subspan(own))) crashes.push_back(crash);
    std::stable_sort(crashes.begin(), crashes.end(), [](const Crash& a, const Crash& b) { return a.ts() < b.ts(); });
    perhaps_partly = perhaps_partly || std::any_of(all.back().begin(), all.back().end(),
                                                   [](const Crash& crash) { return crash.perhaps_partly(); });
  }
  std::optional<ActiveSpans> spans;  // built only if needed, because that reads all events
  if (perhaps_partly) spans.emplace(given);
  Ids ids;
  std::vector<ProcessFaults> found;
  for (std::size_t node = 0; node < all.size(); ++node)
    found.push_back(crashes_of(given, facts, static_cast<int>(node), all[node], spans, ids));
  return found;
}

}  // namespace rose::diagnose
