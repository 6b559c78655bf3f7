// Levels 1 and 2: forms of a fault that the evidence only suggests: a slow disk, a call that was executed in part, a
// crash with power loss, a link that lost or delayed packets, a partition that ended at an event, a fault of whichever
// node has a role.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "diagnose/move.h"
#include "evidence/forms.h"
#include "evidence/surprise.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

// a longer delay of a call is like a pause, and a longer delay of a packet is like a partition
constexpr std::int64_t kLongestDelay = 20 * kSecond;
constexpr double kLeastLoss = 0.3, kMostLoss = 0.9;  // less loss causes no silence, more loss is like a partition
constexpr std::int64_t kPartBytes = 512;             // bytes that a partial write writes
constexpr std::size_t kMostPowerContexts = 4;        // events of one node after which power loss is tried
constexpr std::size_t kMostRoles = 2;                // functions that may define a role, tried for one fault

class RareTrials {
 public:
  explicit RareTrials(const World& world) : world_(world) { limit_ = longest_workload(*world.config); }

  std::vector<Trial> build() {
    for (const Candidate& c : world_.plan.candidates) {
      if (c.symptom) continue;
      if (c.kind == FaultKind::pause && c.blocked) slow_disk(c);
      if (c.kind == FaultKind::syscall) done_in_part(c);
      if (c.kind == FaultKind::syscall && c.count == 1 && kernel::resource_error(c.fault.error)) forever(c);
      if (c.kind == FaultKind::partition) healed_by(c);
      if (c.kind == FaultKind::crash || c.kind == FaultKind::pause) role_of(c);
      if (c.kind == FaultKind::crash) power_of(c);
    }
    bad_links();
    return std::move(trials_);
  }

 private:
  void propose(std::vector<Fault> faults, int level, double yield, std::string why,
               std::vector<schedule::Role> roles = {}) {
    Trial t;
    t.level = level;
    t.schedule.name = world_.config->name;
    t.schedule.roles = std::move(roles);
    t.schedule.faults = std::move(faults);
    t.yield = yield;
    t.why = std::move(why);
    trials_.push_back(std::move(t));
  }

  // Proposes delayed calls for a process that was blocked on its disk: unlike in a pause, the other processes of the
  // node continue.
  void slow_disk(const Candidate& c) {
    if (!can_delay_calls(*world_.inputs, c.node)) return;
    double share = kShareCallShape;
    for (const char* syscall : {"f*sync", "write", "pwrite64", "openat"}) {
      Fault fault;
      fault.id = fmt::format("slow-{}-{}", syscall[0] == 'f' ? "sync" : syscall, c.node);
      fault.kind = FaultKind::syscall;
      fault.node = c.node;
      fault.call.syscall = syscall;
      if (syscall != std::string_view("f*sync")) fault.call.path = "/*";  // files, not sockets
      fault.delay_ns = std::min(c.fault.duration_ns, kLongestDelay);
      fault.when = when_observed(world_, c);
      propose({fault}, 1, share * c.weight,
              fmt::format("the disk delays one call instead of pausing the whole node: {}", c.why));
      share *= kNextStep;
    }
  }

  // Proposes errors that are returned after the call was executed in part or completely, and syncs that do nothing.
  void done_in_part(const Candidate& c) {
    const std::string& call = c.syscall;
    const bool writes = call == "write" || call == "pwrite64" || call == "writev" || call == "pwritev";
    // A datagram whose send failed may have been sent.
    const bool sends = kernel::sends_datagrams(call) && call != "sendmmsg";
    const bool names = call.starts_with("rename") || call.starts_with("unlink") || call.starts_with("link") ||
                       call.starts_with("mkdir");
    const bool syncs = call == "fsync" || call == "fdatasync";
    if (c.profiled || !(syncs ? can_fail_calls(*world_.inputs, c.node)
                              : (writes || sends || names) && can_delay_calls(*world_.inputs, c.node)))
      return;
    const auto shape = [&](const char* what, auto edit, double share = kShareRare) {
      Fault fault = c.fault;
      edit(fault);
      propose({std::move(fault)}, 1, share * c.weight, fmt::format("{}: {}", what, c.why));
    };
    // A broken disk may have written a part of the data. For a full disk this is less likely, because the kernel
    // returns a short count instead of the error.
    if (writes)
      shape(
          "the call wrote a part of its data before it failed",
          [](Fault& f) {
            f.effect = schedule::Effect::bytes;
            f.effect_bytes = kPartBytes;
          },
          c.error == "EIO" ? kShareRare : kShareRare / 4);
    if (sends || names)
      shape("the call was done but reported as failed", [](Fault& f) { f.effect = schedule::Effect::full; });
    if (syncs)  // after a sync that failed, later ones may succeed without writing
      shape("the call was reported as done but was not done", [](Fault& f) {
        f.error = 0;
        f.result = 0;
        f.times = 1;
      });
  }

  // Proposes that a resource error continues until the end of the run, because the dump may have ended right after the
  // first error.
  void forever(const Candidate& c) {
    if (!can_fail_calls(*world_.inputs, c.node)) return;
    Fault fault = c.fault;
    fault.times = -1;
    propose({std::move(fault)}, 1, kShareCallShape * c.weight,
            fmt::format("from then on permanently, although it was observed once: {}", c.why));
  }

  // Proposes a partition that lasts until an event, because the last event of a node before the end of the silence may
  // have ended the partition.
  void healed_by(const Candidate& c) {
    if (!world_.contexts || c.last_ts <= c.first_ts) return;
    for (const auto& [name, number] : world_.node_numbers) {
      for (const ContextEvent& event : world_.contexts->before(number, c.last_ts - kHealsWith, c.last_ts, 1)) {
        Fault fault = c.fault;
        fault.duration_ns = 0;
        fault.until = {event.condition};
        fault.until[0].node = name;
        fault.when = when_observed(world_, c);
        fault.after.clear();
        propose({std::move(fault)}, 2, kShareRare * c.weight,
                fmt::format("until {} on {}: {}", context_words(event.condition), name, c.why));
      }
    }
  }

  // Proposes a bad link for repeated silences of one pair: a link that loses or delays most of its packets, instead of
  // several partitions.
  void bad_links() {
    std::set<std::string> done;
    for (const Candidate& first : world_.plan.candidates) {
      if (first.kind != FaultKind::partition || first.symptom || !done.insert(first.node + "/" + first.peer).second)
        continue;
      std::vector<std::int64_t> gaps;
      std::int64_t from = first.first_ts;
      std::int64_t to = first.last_ts;
      double weight = 0;
      for (const Candidate& c : world_.plan.candidates) {
        if (c.kind != FaultKind::partition || c.node != first.node || c.peer != first.peer || c.symptom) continue;
        if (c.first_ts > to + limit_ || c.last_ts < from - limit_) continue;
        gaps.push_back(c.last_ts - c.first_ts);
        weight += c.weight;
        from = std::min(from, c.first_ts);
        to = std::max(to, c.last_ts);
      }
      if (gaps.size() < kSilencesOfBadLink || to <= from) continue;
      bad_link(first, gaps, from, to, weight);
    }
  }

  void bad_link(const Candidate& first, std::vector<std::int64_t> gaps, std::int64_t from, std::int64_t to,
                double weight) {
    Fault fault = first.fault;
    fault.kind = FaultKind::network;
    fault.loss = 1;  // the default: only the fault kind "partition" uses it
    fault.times = -1;
    fault.duration_ns = std::min(std::max(kTimeStep, rounded(to - from)), limit_ / 2);
    fault.after.clear();
    Candidate began = first;
    began.first_ts = from;
    fault.when = when_observed(world_, began);
    const std::string seen =
        fmt::format("{} silences of {} within {}", gaps.size(), first.node, format_duration(rounded(to - from)));
    std::int64_t silent = 0;
    for (const std::int64_t gap : gaps) silent += gap;
    Fault loss = fault;
    loss.id = fmt::format("loss-{}", first.node);
    loss.link.loss = std::clamp(std::round(10.0 * static_cast<double>(silent) / static_cast<double>(to - from)) / 10,
                                kLeastLoss, kMostLoss);
    propose({std::move(loss)}, 1, kShareCallShape * weight, fmt::format("a link that loses packets: {}", seen));
    // Each packet is delayed by 0 to twice this value, so the gaps between packets are as long as the silences were.
    std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2), gaps.end());
    Fault slow = std::move(fault);
    slow.id = fmt::format("delay-{}", first.node);
    slow.link.delay_ns = std::clamp(rounded(gaps[gaps.size() / 2] / 2), kTimeStep, kLongestDelay);
    slow.link.jitter_ns = slow.link.delay_ns;
    propose({std::move(slow)}, 1, kShareCallShape * kNextStep * weight,
            fmt::format("a link that delays packets: {}", seen));
  }

  // Proposes the fault for the node with a role. Assumption: a function of the context that only one node of the test
  // deployment enters is part of a role, which production's node had.
  void role_of(const Candidate& c) {
    if (!world_.contexts || world_.config->nodes.size() < 2) return;
    const auto number = world_.node_numbers.find(c.node);
    if (number == world_.node_numbers.end()) return;
    std::size_t roles = 0;
    std::set<std::string> seen;
    for (const ContextEvent& event : world_.contexts->before(number->second, INT64_MIN, c.first_ts, 16)) {
      if (event.condition.kind != ConditionKind::function || !seen.insert(event.key).second) continue;
      std::set<std::string> nodes;
      for (const trace::Event& e : world_.survey.trace.events)
        if (meets(world_.survey.trace, e, event.condition)) nodes.emplace(world_.survey.trace.str(e.node));
      if (nodes.size() != 1) continue;
      Fault fault = c.fault;
      fault.node = "@role";
      fault.after.clear();
      Condition has;
      has.kind = ConditionKind::role;
      has.role = "role";
      fault.when = {has};
      for (Condition& later : when_observed(world_, c)) fault.when.push_back(later);
      propose({std::move(fault)}, 2, kShareRare * c.weight * (nodes.contains(c.node) ? 0.5 : 2),
              fmt::format("whichever node has entered {} last: {}", event.condition.function, c.why),
              {{"role", event.condition.function}});
      if (++roles >= kMostRoles) return;
    }
  }

  // True if the machine kept running after the crash, because its tracer recorded the signal and later events. A
  // machine that loses power loses the tracer's window.
  bool machine_continued(const Candidate& c) const {
    return std::any_of(world_.inputs->sources.begin(), world_.inputs->sources.end(), [&](const evidence::Source& dump) {
      if (dump.meta.host.empty() || dump.meta.end_ns < c.last_ts + kActiveAfterEnd) return false;
      return std::any_of(dump.observations.begin(), dump.observations.end(), [&](const evidence::Observation& e) {
        return e.type == trace::EventType::ps && e.state == trace::ProcessState::crashed && e.signal == SIGKILL &&
               e.ts_ns >= c.first_ts && e.ts_ns <= c.last_ts;
      });
    });
  }

  // Proposes power loss, in which unsynced data are lost, for a node all of whose processes were killed at once: at the
  // observed time, and after the last events of the node. The shares are small (kSharePower), because a program that
  // never syncs then loses all its data, whatever happened in production.
  void power_of(const Candidate& c) {
    const auto& nodes = world_.config->nodes;
    const auto node =
        std::find_if(nodes.begin(), nodes.end(), [&](const auto& other_node) { return other_node.name == c.node; });
    if (!world_.inputs->power || c.own_end || c.fault.signal != SIGKILL || c.fault.scope != schedule::Scope::all ||
        node == nodes.end() || node->attach || machine_continued(c))
      return;
    Fault fault = c.fault;
    fault.after.clear();
    fault.lose = schedule::Loss::unsynced;
    fault.when = when_observed(world_, c);
    propose({fault}, 1, kSharePower * kShareShape * c.weight,
            fmt::format("with power loss, so that unsynced data is gone: {}", c.why));
    const auto number = world_.node_numbers.find(c.node);
    if (!world_.contexts || number == world_.node_numbers.end()) return;
    double share = kSharePower * kShareRare;
    for (const ContextEvent& event :
         world_.contexts->before(number->second, INT64_MIN, c.first_ts, kMostPowerContexts)) {
      fault.when = {event.condition};
      propose({fault}, 2, share * c.weight,
              fmt::format("with power loss, so that unsynced data is gone, after {}: {}",
                          context_words(event.condition), c.why));
      share *= kNextStep;
    }
  }

  const World& world_;
  std::int64_t limit_ = 0;
  std::vector<Trial> trials_;
};

}  // namespace

std::vector<Trial> rare_trials(const World& world) {
  return world.uses("rare") ? RareTrials(world).build() : std::vector<Trial>();
}

std::vector<Trial> call_context_trials(const World& world) {
  constexpr std::size_t kCalls = 8;
  constexpr std::size_t kEvents = 4;
  constexpr std::uint64_t kOccurrences = 50;
  std::vector<Trial> trials;
  if (!world.uses("contexts")) return trials;
  std::size_t calls = 0;
  for (const Candidate* candidate : by_weight(world.plan)) {
    const Candidate& c = *candidate;
    if (c.kind != FaultKind::syscall || c.symptom || c.ordinariness > 1 || !world.contexts ||
        !can_fail_calls(*world.inputs, c.node))
      continue;
    const auto number = world.node_numbers.find(c.node);
    if (number == world.node_numbers.end()) continue;
    if (++calls > kCalls) break;
    double share = kShareCallContext;
    // Leave out calls that, according to the survey, are never made. Leave out contexts that are met before the very
    // first such call, because plain trials already make that first call fail.
    const Answer* answer = world.survey.find({c.node, {}, call_condition(c.fault.call)});
    if (answer != nullptr && answer->times == 0) continue;
    const trace::Trace& usual = world.survey.trace;
    const auto comes_later = [&](const ContextEvent& event, std::uint64_t occurrence) {
      if (answer == nullptr || !world.survey.made || usual.meta.workload_ts == 0) return true;
      std::uint64_t times = 0;
      for (const trace::Event& control_event : usual.events) {
        if (control_event.ts_ns > usual.meta.workload_ts + answer->first_ns) break;
        if ((control_event.node != 0 ? usual.str(control_event.node) : std::string_view(usual.meta.node)) == c.node &&
            meets(usual, control_event, event.condition))
          times += times_of(control_event);
      }
      return times < occurrence;
    };
    // The factor is below 1 for an occurrence that the survey's run does not have: a dump of days, or of several hosts,
    // contains more occurrences than a run.
    const auto possible = [&](const ContextEvent& event, std::uint64_t occurrence) {
      if (!world.survey.made || usual.meta.workload_ts == 0) return 1.0;
      std::uint64_t times = 0;
      for (const trace::Event& control_event : usual.events)
        if ((control_event.node != 0 ? usual.str(control_event.node) : std::string_view(usual.meta.node)) == c.node &&
            meets(usual, control_event, event.condition))
          times += times_of(control_event);
      return times < occurrence ? kOddsNeverCalled : 1.0;
    };
    std::set<std::string> seen;
    for (const ContextEvent& event : world.contexts->before(number->second, INT64_MIN, c.first_ts, 32)) {
      if (!seen.insert(event.key).second) continue;
      if (seen.size() > kEvents) break;
      Trial t;
      t.level = 2;
      t.schedule.name = world.config->name;
      t.schedule.faults = {c.fault};
      Fault& fault = t.schedule.faults[0];
      fault.after.clear();
      fault.count = 1;
      fault.when = {event.condition};
      t.why = fmt::format("{} after {}", fault.id, context_words(event.condition));
      t.yield = share * c.weight * possible(event, 1);
      if (comes_later(event, 1)) trials.push_back(t);
      if (event.occurrence > 1 && event.occurrence <= kOccurrences && comes_later(event, event.occurrence)) {
        fault.when[0].count = static_cast<int>(event.occurrence);
        t.why += fmt::format(", {} time", ordinal_text(event.occurrence));
        t.yield = share * c.weight * possible(event, event.occurrence);
        trials.push_back(std::move(t));
      }
      share *= kNextStep;
    }
  }
  return trials;
}

}  // namespace rose::diagnose
