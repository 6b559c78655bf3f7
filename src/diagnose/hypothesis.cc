#include "diagnose/hypothesis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "diagnose/conclude.h"
#include "diagnose/feedback.h"
#include "diagnose/move.h"
#include "diagnose/survey.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

constexpr std::string_view kAnywhere = "-anywhere";  // suffix of the group of a fault that is armed on every node
constexpr std::string_view kWindow = "window";       // group of unrelated alternatives (window.h)
// A candidate is certain (is_certain()) only if its Candidate::ordinariness is at most this. Everyday errors have a
// higher ordinariness.
constexpr int kFewOrdinary = 1;
// A hypothesis whose rate is below this share of the reported schedule's rate is not a rival.
constexpr double kAsWell = 0.5;
constexpr std::size_t kMostReported = 5;  // rivals
constexpr std::size_t kMostSigns = 2;     // observables that are reported for one rival

bool contains(const Hypothesis& whole, const Hypothesis& part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

// True if both faults come from one exhausted resource of one node: two calls that fail with the same resource error,
// or a limit and a call that fails because of it.
bool same_cause(const Fault& a, const Fault& b) {
  if (a.node != b.node) return false;
  if (a.kind == FaultKind::syscall && b.kind == FaultKind::syscall)
    return a.error == b.error && kernel::resource_error(a.error);
  const Fault& limit = a.kind == FaultKind::syscall ? b : a;
  const Fault& call = a.kind == FaultKind::syscall ? a : b;
  if (call.kind != FaultKind::syscall) return false;
  switch (limit.kind) {
    case FaultKind::disk_full: return call.error == ENOSPC || call.error == EDQUOT;
    case FaultKind::descriptors: return call.error == EMFILE || call.error == ENFILE;
    case FaultKind::memory: return call.error == ENOMEM;
    default: return false;
  }
}

// True if each fault of `first` has a fault with the same cause in `other`.
bool same_causes(const Schedule& first, const Schedule& other) {
  return std::all_of(first.faults.begin(), first.faults.end(), [&](const Fault& a) {
    return std::any_of(other.faults.begin(), other.faults.end(),
                       [&](const Fault& b) { return a.id == b.id || same_cause(a, b); });
  });
}

// For people: an observable that signs_of() returns, "n2 connect ECONNREFUSED" or "n2 ended".
std::string sign_in_words(const std::string& sign) {
  const std::vector<std::string> parts = split(sign, ' ');
  if (parts.size() == 3 && parts[2] == kShortCall)
    return fmt::format("{} of {} does less than requested, without an error", parts[1], parts[0]);
  if (parts.size() == 3) return fmt::format("{} of {} fails with {}", parts[1], parts[0], parts[2]);
  if (parts.size() == 2 && parts[1] == "ended") return fmt::format("{} ends itself or is killed", parts[0]);
  return sign;
}

// For people: the traces that a fault leaves in production (`shows`), and the question that decides whether the fault
// happened (`test`). Counters have their names in Linux and, in brackets, those in Prometheus' node exporter, because
// most installations keep a history of the exporter's counters.
struct Traces {
  std::string shows, test;
};

Traces traces_of_call(const Fault& fault, const Candidate* candidate) {
  const std::string call = fault.call.syscall + (fault.call.path ? fmt::format(" of {}", *fault.call.path) : "");
  const bool is_short =
      fault.error == 0 && fault.effect == schedule::Effect::bytes && fault.result == fault.effect_bytes;
  Traces traces;
  if (is_short)
    traces = {fmt::format("{} of {} that does only {} bytes, without an error", call, fault.node, fault.effect_bytes),
              fmt::format("whether that call of {} returned {} or an error (strace, the log)", fault.node,
                          fault.effect_bytes)};
  else if (fault.error == 0)
    traces = {fmt::format("{} of {} that returns success, but did not do what it reports", call, fault.node),
              fmt::format("whether the data was on the disk of {} afterwards", fault.node)};
  else
    traces = {fmt::format("{} of {} that fails with {}", call, fault.node, kernel::errno_name(fault.error)),
              fmt::format("whether the log of {} says \"{}\" at that time", fault.node, std::strerror(fault.error))};
  switch (fault.error) {
    case ENOSPC:
    case EDQUOT:
      traces.test = fmt::format(
          "how much space the file system of {} had at that time "
          "(node_filesystem_avail_bytes, node_filesystem_files_free)",
          fault.node);
      break;
    case EIO:
    case EROFS:
      traces.test = fmt::format(
          "whether the kernel log of the host of {} has an I/O error of that disk at that time "
          "(journalctl -k)",
          fault.node);
      break;
    case EMFILE:
    case ENFILE:
      traces.test = fmt::format(
          "whether the open descriptors of {} reached their limit (process_open_fds, "
          "/proc/PID/limits, node_filefd_allocated)",
          fault.node);
      break;
    case ENOMEM:
      traces.test = fmt::format(
          "whether memory ran out on the host of {} (node_memory_MemAvailable_bytes, oom_kill "
          "of memory.events); a process that is being killed gets this error as well",
          fault.node);
      break;
    case EACCES:
    case EPERM:
      traces.test = fmt::format(
          "the owner and mode of the file, and who changed them (stat, the audit log) on the host of {}", fault.node);
      break;
    default: break;
  }
  if (candidate != nullptr && candidate->kind == FaultKind::syscall && !candidate->peer.empty())
    traces.test += fmt::format("; and what {} did then", candidate->peer);
  return traces;
}

Traces traces_of(const Fault& fault, const Candidate* candidate) {
  const std::string peers = fault.peers.empty() ? "all other nodes" : fmt::format("{}", fmt::join(fault.peers, ", "));
  switch (fault.kind) {
    case FaultKind::syscall: return traces_of_call(fault, candidate);
    case FaultKind::crash:
      if (fault.lose != schedule::Loss::nothing)
        return {
            fmt::format("the boot of the host of {}, and files that are shorter or older than {} had written them",
                        fault.node, fault.node),
            fmt::format("whether the host of {} started again at that time (last -x reboot, node_boot_time_seconds)",
                        fault.node)};
      return {fmt::format("the end of {} by a signal, and its restart", fault.node),
              fmt::format("who sent the signal: the kernel log (\"Killed process\"), or the log of the service manager "
                          "or container runtime, on the host of {}",
                          fault.node)};
    case FaultKind::pause:
      return {
          fmt::format("no calls and no messages of {} for that long, while its process continued to exist", fault.node),
          fmt::format("whether the log of {} has a gap at that time, and its processor time did not grow "
                      "(process_cpu_seconds_total; steal time or a frozen cgroup explain it)",
                      fault.node)};
    case FaultKind::partition:
    case FaultKind::network:
      return {fmt::format("unanswered data and retransmissions between {} and {}, on both ends", fault.node, peers),
              fmt::format("whether the counter of retransmitted TCP segments rose at that time on {} or its peers "
                          "(nstat TcpRetransSegs, node_netstat_Tcp_RetransSegs): an idle connection leaves it as it is",
                          fault.node)};
    case FaultKind::clock:
      return {fmt::format("a clock of {} that differs from those of its peers", fault.node),
              fmt::format("whether chronyd, ntpd or the kernel log of {} report a step of the clock "
                          "(node_timex_offset_seconds)",
                          fault.node)};
    case FaultKind::exception:
      return {fmt::format("the stack trace of {} in the log of {}", fault.throws, fault.node),
              fmt::format("whether the log of {} has that stack trace before the failure", fault.node)};
    case FaultKind::descriptors:
      return {fmt::format("calls of {} that fail with EMFILE", fault.node),
              fmt::format("whether the open descriptors of {} reached their limit (process_open_fds)", fault.node)};
    case FaultKind::memory:
      return {fmt::format("calls of {} that fail with ENOMEM, or an end by the kernel", fault.node),
              fmt::format("whether oom_kill of memory.events of {} rose, or the kernel log says \"Out of memory\"",
                          fault.node)};
    case FaultKind::cpu:
      return {fmt::format("all that {} does takes longer", fault.node),
              fmt::format("whether nr_throttled of cpu.stat of {} rose (container_cpu_cfs_throttled_periods_total)",
                          fault.node)};
    case FaultKind::disk_full:
      return {fmt::format("writes of {} that fail with ENOSPC, or write less than was asked", fault.node),
              fmt::format("how much space the file system of {} had at that time (node_filesystem_avail_bytes)",
                          fault.node)};
    case FaultKind::disk_slow:
      return {fmt::format("reads, writes and syncs of {} that take far longer", fault.node),
              fmt::format("the time that requests to the disk of {} took (node_disk_io_time_seconds_total, iostat -x)",
                          fault.node)};
    case FaultKind::block:
      return {fmt::format("a thread of {} that waits", fault.node),
              fmt::format("a stack of the threads of {} at that time", fault.node)};
  }
  return {};
}

}  // namespace

const Candidate* candidate_for(const Plan& plan, const Fault& fault) {
  std::string_view id = fault.id;
  if (!fault.group.empty() && fault.group.ends_with(kAnywhere))
    id = std::string_view(fault.group).substr(0, fault.group.size() - kAnywhere.size());
  for (const Candidate& c : plan.candidates) {
    if (c.fault.id == id || (c.other_length && c.other_length->id == id)) return &c;
    if (std::any_of(c.alternatives.begin(), c.alternatives.end(), [&](const Fault& shape) { return shape.id == id; }))
      return &c;
  }
  return nullptr;
}

Hypothesis hypothesis_of(const Plan& plan, const Schedule& schedule) {
  Hypothesis parts;
  for (const Fault& fault : schedule.faults) {
    const Candidate* c = candidate_for(plan, fault);
    parts.insert(c != nullptr ? c->id : fault.id);
  }
  return parts;
}

std::string hypothesis_id(const Hypothesis& hypothesis) { return fmt::format("{}", fmt::join(hypothesis, "+")); }

bool is_certain(const Candidate& c) {
  const bool network = c.kind == FaultKind::partition || c.kind == FaultKind::network;
  return c.known == Known::seen && c.plainness >= 1 && !c.symptom && !c.own_end && !c.profiled && !c.follows &&
         c.usual >= 1 && c.ordinariness <= kFewOrdinary && !(network && c.other_length);
}

std::set<std::string> certain_faults(const Plan& plan, const Schedule& schedule) {
  // In no dump does a call fail that has done a part of its work, because the kernel reports that part instead.
  const auto assumed = [](const Fault& fault) {
    return fault.error != 0 && fault.effect == schedule::Effect::bytes && !fault.result;
  };
  std::set<std::string> ids;
  for (const Fault& fault : schedule.faults)
    if (const Candidate* c = candidate_for(plan, fault); c != nullptr && is_certain(*c) && !assumed(fault))
      ids.insert(fault.id);
  return ids;
}

bool ruled_out(const Inputs& inputs, const Plan& plan, const Schedule& schedule) {
  if (inputs.ruled_out.empty() || schedule.faults.empty()) return false;
  const Hypothesis hypothesis = hypothesis_of(plan, schedule);
  return std::any_of(inputs.ruled_out.begin(), inputs.ruled_out.end(),
                     [&](const std::string& id) { return hypothesis.contains(id) || hypothesis_id(hypothesis) == id; });
}

std::vector<const Schedule*> untried(const Diagnosis& diagnosis, const Schedule& found, double share, bool certain) {
  const Plan& plan = diagnosis.plan;
  const Hypothesis known = hypothesis_of(plan, found);
  double most = 0;
  for (const Candidate& c : plan.candidates)
    if (known.contains(c.id)) most = std::max(most, c.weight);
  std::set<Hypothesis> made;
  for (const Tried& tried : diagnosis.tried)
    if (tried.tally.runs() > 0) made.insert(hypothesis_of(plan, tried.schedule));
  std::map<Hypothesis, const Schedule*> alone;  // the most likely schedule with one fault, by hypothesis
  for (const Schedule& schedule : plan.schedules)
    if (schedule.faults.size() == 1) alone.try_emplace(hypothesis_of(plan, schedule), &schedule);
  std::vector<const Schedule*> schedules;
  for (const Candidate* c : by_weight(plan)) {
    const auto as_seen = alone.find({c->id});
    if ((!certain || is_certain(*c)) && !c->symptom && !known.contains(c->id) && c->weight >= share * most &&
        as_seen != alone.end() && !same_causes(*as_seen->second, found) && !made.contains(as_seen->first))
      schedules.push_back(as_seen->second);
  }
  return schedules;
}

std::vector<Rival> rivals_of(const Inputs& inputs, const Diagnosis& diagnosis, const Schedule& found,
                             const Tried& reported) {
  const Plan& plan = diagnosis.plan;
  const Hypothesis own = hypothesis_of(plan, found);
  const std::set<std::string> own_certain = certain_faults(plan, found);
  struct Other {
    const Tried* tried = nullptr;
    double weight = 0;
  };
  std::map<Hypothesis, Other> others;  // the schedule that reproduced the bug most often, by hypothesis
  const auto worse = [](const Tried& a, const Tried& b) {
    return std::pair(a.tally.rate(), a.tally.reproduced) < std::pair(b.tally.rate(), b.tally.reproduced);
  };
  for (const Tried& tried : diagnosis.tried) {
    const std::vector<Fault>& faults = tried.schedule.faults;
    if (tried.tally.reproduced == 0 || tried.tally.rate() < kAsWell * diagnosis.tally.rate() || faults.empty() ||
        std::all_of(faults.begin(), faults.end(), is_counter) || faults[0].group == kWindow ||
        !resembles_incident(inputs, diagnosis, tried))
      continue;
    const Hypothesis hypothesis = hypothesis_of(plan, tried.schedule);
    // A hypothesis that contains the reported one is no rival: its other faults were not needed. A part of the reported
    // hypothesis is a rival only if the reported one has certain faults and the part has none: then the bug does not
    // need the faults that certainly happened.
    if (contains(hypothesis, own) || (!contains(own, hypothesis) && same_causes(tried.schedule, found))) continue;
    if (contains(own, hypothesis) && (own_certain.empty() || !certain_faults(plan, tried.schedule).empty())) continue;
    Other& other = others[hypothesis];
    if (other.tried == nullptr || worse(*other.tried, tried)) other.tried = &tried;
    other.weight = 0;
    for (const Candidate& c : plan.candidates)
      if (hypothesis.contains(c.id)) other.weight += c.weight;
  }
  std::vector<std::pair<Rival, double>> rivals;
  for (const auto& [hypothesis, other] : others) {
    // Skip a hypothesis if a subset of its candidates is also a rival, because the simpler one explains the failure,
    // too.
    if (std::any_of(others.begin(), others.end(), [&, &key = hypothesis](const auto& smaller) {
          return smaller.first.size() < key.size() && contains(key, smaller.first);
        }))
      continue;
    Rival rival;
    rival.id = hypothesis_id(hypothesis);
    rival.schedule = other.tried->schedule;
    rival.tally = other.tried->tally;
    rival.certain = certain_faults(plan, rival.schedule).size() == rival.schedule.faults.size();
    for (const Fault& fault : rival.schedule.faults) {
      const Candidate* c = candidate_for(plan, fault);
      if (own.contains(c != nullptr ? c->id : fault.id) && hypothesis.size() > 1) continue;
      const Traces traces = traces_of(fault, c);
      const std::string known = c == nullptr     ? "for which there is no evidence"
                                : is_certain(*c) ? "which the dump contains"
                                : c->symptom     ? "which an earlier event in the dump explains"
                                                 : fmt::format("which is {}", known_name(c->known));
      rival.would_have_shown +=
          fmt::format("{}{} ({})", rival.would_have_shown.empty() ? "" : "; ", traces.shows, known);
      if (rival.test.empty()) rival.test = traces.test;
    }
    // Also report the observables that occur in the rival's runs, but neither in runs of the reported schedule, nor in
    // production, nor in runs without faults. If the rival had happened, production would have contained them.
    std::vector<std::string> signs;
    for (const std::string& sign : other.tried->brought_back) {
      const bool of_trace = split(sign, ' ').size() == 3 || sign.ends_with(" ended");
      if (!of_trace || reported.brought_back.contains(sign) || diagnosis.usual_signs.contains(sign) ||
          std::any_of(plan.observables.begin(), plan.observables.end(),
                      [&](const Observable& o) { return o.key == sign; }) ||
          signs.size() >= kMostSigns)
        continue;
      signs.push_back(sign_in_words(sign));
    }
    if (!signs.empty())
      rival.would_have_shown += fmt::format("; in its runs also: {}, which production's evidence does not contain",
                                            fmt::join(signs, " and "));
    rivals.emplace_back(std::move(rival), other.weight);
  }
  std::stable_sort(rivals.begin(), rivals.end(), [](const auto& a, const auto& b) {
    if (a.first.certain != b.first.certain) return a.first.certain;
    if (a.first.tally.rate() != b.first.tally.rate()) return a.first.tally.rate() > b.first.tally.rate();
    return a.second > b.second;
  });
  if (rivals.size() > kMostReported) rivals.resize(kMostReported);
  std::vector<Rival> ordered;
  for (auto& [rival, weight] : rivals) ordered.push_back(std::move(rival));
  return ordered;
}

}  // namespace rose::diagnose
