#include "diagnose/feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnose/thresholds.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
std::string sign_of_call(std::string_view node, std::string_view syscall, std::string_view error) {
  return fmt::format("{} {} {}", node, syscall, error.empty() ? kShortCall : error);
}
std::string sign_of_end(std::string_view node) { return fmt::format("{} ended", node); }

std::set<std::string> signs_of(const trace::Trace& trace) {
  std::set<std::string> found;
  for (const trace::Event& event : trace.events) {
    if ((event.flags & (trace::kInjected | trace::kPlanned | trace::kDying)) != 0) continue;
    const std::string_view node = event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node);
    if (event.type == trace::EventType::scf)
      found.insert(sign_of_call(node, kernel::syscall_name(event.syscall),
                                event.err == 0 ? std::string_view() : kernel::errno_name(event.err)));
    else if (event.type == trace::EventType::ps && event.state == trace::ProcessState::crashed)
      found.insert(sign_of_end(node));
    else if (event.type == trace::EventType::ps && event.state == trace::ProcessState::exited && event.exit_code != 0)
      found.insert(sign_of_end(node));
  }
  return found;
}

MissingMessages messages_missing(const std::vector<Observable>& of_logs, const Diagnosis& diagnosis,
                                 const Tried& tried) {
  std::vector<const Observable*> wanted;
  for (const std::int64_t since : {diagnosis.plan.workload_ts, std::int64_t{0}}) {
    for (const Observable& observable : of_logs)
      if (!observable.words.empty() && !diagnosis.without_faults.contains(observable.key) &&
          (since == 0 || observable.first_ts == 0 || observable.first_ts >= since))
        wanted.push_back(&observable);
    if (!wanted.empty()) break;
  }
  MissingMessages missing;
  std::map<std::string_view, bool> of_node;  // by node: whether any of its messages occurred
  for (const Observable* observable : wanted) {
    ++missing.of;
    const bool back = tried.brought_back.contains(observable->key);
    if (!back) missing.words.push_back(observable->words);
    of_node[observable->node] |= back;
  }
  const std::size_t back = missing.of - missing.words.size();
  // True if the schedule makes calls of a node fail, and this node logged messages in production, but none of these
  // messages in the runs. This outweighs the messages of other nodes, which are the same after many kinds of failures.
  const bool silent =
      std::any_of(tried.schedule.faults.begin(), tried.schedule.faults.end(), [&](const schedule::Fault& fault) {
        const auto own = of_node.find(fault.node);
        return fault.kind == schedule::FaultKind::syscall && own != of_node.end() && !own->second;
      });
  if (!silent && kFewCameBack * back >= missing.of) missing.words.clear();
  return missing;
}

std::vector<std::string> ends_missing(const Plan& plan, const Tried& tried) {
  std::vector<std::string> missing;
  if (!tried.traced) return missing;
  for (const Candidate& c : plan.candidates) {
    if (c.kind != schedule::FaultKind::crash || !c.own_end || c.partly || c.usual < 1) continue;
    const auto ends_it = [&](const schedule::Fault& fault) { return fault.id == c.fault.id; };
    if (std::any_of(tried.schedule.faults.begin(), tried.schedule.faults.end(), ends_it) ||
        tried.brought_back.contains(sign_of_end(c.node)))
      return {};
    missing.push_back(c.why.substr(0, c.why.find(';')));
  }
  return missing;
}

Feedback::Feedback(const Plan& plan, const trace::Trace& control) {
  const std::set<std::string> usual = signs_of(control);
  for (const Observable& observable : plan.observables)
    if (!usual.contains(observable.key)) wanted_.push_back({observable, 1});
  std::vector<std::int64_t> times;  // of all candidates; distances are measured in candidates, not in seconds
  for (const Candidate& c : plan.candidates) times.push_back(c.first_ts);
  std::sort(times.begin(), times.end());
  const auto at = [&](std::int64_t ts) { return std::lower_bound(times.begin(), times.end(), ts) - times.begin(); };
  for (const Candidate& c : plan.candidates) {
    Known known{c.fault.id, {}, {}, 1};
    if (c.kind == schedule::FaultKind::syscall) known.key = sign_of_call(c.node, c.syscall, c.error);
    if (c.kind == schedule::FaultKind::crash && c.own_end) known.key = sign_of_end(c.node);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const Observable& o = wanted_[i].observable;
      if (o.key == known.key || o.first_ts < c.first_ts) continue;
      known.follows.push_back({i, 1.0 / static_cast<double>(1 + at(o.first_ts) - at(c.first_ts))});
    }
    known_.push_back(std::move(known));
  }
}

double Feedback::share(const std::set<std::string>& signs) const {
  double back = 0;
  double all = 0;
  for (const Wanted& wanted : wanted_) {
    all += wanted.priority;
    if (signs.contains(wanted.observable.key)) back += wanted.priority;
  }
  return all > 0 ? back / all : 0;
}

void Feedback::missed(const schedule::Schedule& schedule, const std::set<std::string>& signs) {
  // If all observables occurred but the bug did not, the fault is right and only its time is wrong, so the priorities
  // do not change.
  const bool all = std::all_of(wanted_.begin(), wanted_.end(),
                               [&](const Wanted& wanted) { return signs.contains(wanted.observable.key); });
  for (Wanted& wanted : wanted_)
    if (!all && signs.contains(wanted.observable.key)) wanted.priority *= kCameBack;
  for (Known& known : known_)
    if (!known.key.empty() && signs.contains(known.key) && schedule.find(known.fault) == nullptr &&
        !schedule.faults.empty())
      known.consequence = std::max(kLeastFactor, known.consequence * kConsequence);
}

std::map<std::string, double, std::less<>> Feedback::factors() const {
  std::map<std::string, double, std::less<>> factors;
  for (const Known& known : known_) {
    double near = 0;
    double missing = 0;
    for (const Follows& follows : known.follows) {
      near += follows.nearness;
      missing += follows.nearness * wanted_[follows.wanted].priority;
    }
    const double related = near > 0 ? kUnrelatedFactor + (1 - kUnrelatedFactor) * missing / near : 1;
    if (const double factor = known.consequence * related; factor < 1) factors.emplace(known.fault, factor);
  }
  return factors;
}

}  // namespace rose::diagnose
