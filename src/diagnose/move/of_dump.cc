// Level 1: the faults as they were observed, together and alone, at the observed times.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/units.h"
#include "diagnose/move.h"
#include "evidence/forms.h"
#include "evidence/surprise.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostWider = 4;       // partitions of an incident that are also tried in a wider form
constexpr std::size_t kMostMixed = 16;      // calls that are also tried together with process and network faults
constexpr std::size_t kMostPaired = 4;      // calls that are also tried in pairs
constexpr std::size_t kMostCalls = 1000;    // at most this many calls are tried, the most likely ones
constexpr std::size_t kMostIncidents = 64;  // at most this many incidents are tried, the last ones

bool call(const Candidate& c) { return hits_by_count(c.kind); }

using List = std::vector<const Candidate*>;

// The times at which incidents of the candidate began, and the time of its last event.
std::vector<std::int64_t> moments_of(const Candidate& c) {
  std::vector<std::int64_t> moments{c.first_ts};
  moments.insert(moments.end(), c.again.begin(), c.again.end());
  if (moments.back() != c.last_ts) moments.push_back(c.last_ts);
  return moments;
}

double weight_of(const List& list) {
  double sum = 0;
  for (const Candidate* c : list) sum += c->weight;
  return sum;
}

class Builder {
 public:
  explicit Builder(const World& world) : world_(world), plan_(world.plan), config_(*world.config) {
    const std::int64_t most = longest_workload(config_);
    span_ = world.workload_ns > 0 ? std::min(world.workload_ns, most)
                                  : std::min(most, std::max(kSecond, plan_.end_ts - plan_.begin_ts));
    limit_ = most;
    first_limit_ = world.workload_ns > 0 ? span_ : most;
  }

  std::vector<Trial> build() {
    List timed;  // process and network faults, by time
    List calls;  // most likely first
    List clocks;
    for (const Candidate* candidate : by_weight(plan_)) {
      const Candidate& c = *candidate;
      if (c.assumed && schedule::limits(c.kind) && !world_.inputs->limits.contains(c.kind)) continue;
      if (call(c)) {
        if (calls.size() < kMostCalls) calls.push_back(&c);
      } else if (c.kind == FaultKind::clock) {
        clocks.push_back(&c);
      } else if (c.symptom) {
        propose(sequence({&c}, points().front()), kSharePlain * c.weight,
                fmt::format("looks like a consequence, but what came before it may not be the cause: {}", c.why));
        for (const Fault& shape : shapes_of(c)) {
          Candidate other = c;
          other.fault = shape;
          propose(sequence({&other}, points().front()), kShareShape * c.weight,
                  fmt::format("another shape of what looks like a consequence: {}", c.why));
        }
      } else if (c.plainness < kLeastReported) {
        at_points({&c}, kSharePlain * c.weight, fmt::format("a guess: {}", c.why));
      } else {
        timed.push_back(&c);
      }
    }
    std::stable_sort(timed.begin(), timed.end(),
                     [](const Candidate* a, const Candidate* b) { return a->first_ts < b->first_ts; });
    const std::vector<List> incidents = split_at_gaps(timed);
    for (std::size_t i = 0; i < incidents.size() && i < kMostIncidents; ++i)
      incident(incidents[incidents.size() - 1 - i], incidents.size());  // the last one first
    old_faults_together(incidents);
    // The failure may also need faults of earlier incidents. If their weights are far lower, the yield is lower.
    if (incidents.size() > 1)
      propose(sequence(last_of(timed), starts(*timed.front()).front()),
              kShareTogether * std::min(weight_of(incidents.back()),
                                        kMuchLessLikely * (weight_of(timed) - weight_of(incidents.back()))),
              "the process and network faults of all incidents together, closer than observed");
    if (world_.uses("one-cause")) root_causes(calls);
    for (const Candidate* c : calls) single_call(*c);
    const List nearest = incidents.empty() ? List{} : last_of(incidents.back());
    set_together(clocks);
    for (const Candidate* c : clocks) {
      if (c->stepped) set_clock(*c, nearest, calls);
      else wrong_clock(*c, nearest, calls);
    }
    std::size_t mixed_calls = 0;
    for (const Candidate* c : calls) {
      if (nearest.empty() || mixed_calls >= kMostMixed || !world_.uses("mixed")) break;
      if (c->symptom) continue;
      ++mixed_calls;
      // Use the first time at which the call failed near the process and network faults; it may also have failed long
      // before.
      const std::vector<std::int64_t> moments = moments_of(*c);
      const auto near = std::find_if(moments.begin(), moments.end(),
                                     [&](std::int64_t ts) { return ts + limit_ >= nearest.front()->first_ts; });
      mixed(*c, c->fault, near != moments.end() ? *near : moments.back(), nearest, kShareMixed * c->weight);
      for (const std::int64_t at : moments)
        if (const Candidate* neighbour = neighbour_of(*c, at, timed)) with_neighbour(*c, at, *neighbour);
    }
    if (world_.uses("pairs")) together(calls);
    std::stable_sort(trials_.begin(), trials_.end(), [](const Trial& a, const Trial& b) { return a.yield > b.yield; });
    order_equals(trials_, config_.diagnose.seed, [](const Trial& a, const Trial& b) { return a.yield == b.yield; });
    const auto most_trials = static_cast<std::size_t>(std::max(1, config_.diagnose.max_runs));
    if (trials_.size() > most_trials) trials_.resize(most_trials);
    return std::move(trials_);
  }

 private:
  void propose(std::vector<Fault> faults, double yield, std::string why, bool many = false) {
    if (faults.empty() || std::any_of(faults.begin(), faults.end(), [&](const Fault& f) {
          return f.kind == FaultKind::syscall && !can_fail_calls(*world_.inputs, f.node);
        }))
      return;
    Trial t;
    t.schedule.name = config_.name;
    t.schedule.faults = std::move(faults);
    t.yield = yield;
    t.why = std::move(why);
    t.many = many || t.schedule.faults.size() > kFewTogether;
    const auto [known, fresh] = seen_.try_emplace(schedule::fingerprint(t.schedule), trials_.size());
    if (fresh) trials_.push_back(std::move(t));
    else trials_[known->second].yield = std::max(trials_[known->second].yield, yield);
  }

  std::vector<Fault> shapes_of(const Candidate& c) const {
    return world_.uses("shapes") ? c.alternatives : std::vector<Fault>();
  }

  // Splits the faults into incidents: faults that are further apart than a workload lasts have little to do with each
  // other.
  std::vector<List> split_at_gaps(const List& timed) const {
    std::vector<List> found;
    for (const Candidate* c : timed) {
      if (found.empty() || c->first_ts - found.back().back()->first_ts > limit_) found.emplace_back();
      found.back().push_back(c);
    }
    return found;
  }

  // The last kMostTogether faults, because faults right before the failure are more likely to be its cause.
  static List last_of(const List& list) {
    return list.size() <= kMostTogether ? list
                                        : List(list.end() - static_cast<std::ptrdiff_t>(kMostTogether), list.end());
  }

  // The points of the workload at which the first fault is tried if its time is unknown.
  std::vector<std::int64_t> points() const { return points_of_workload(span_); }

  // The time from the start of the workload to the candidate. If that is longer than a fault-free run lasts, half the
  // duration of such a run.
  std::int64_t observed(const Candidate& c) const {
    const std::int64_t since = std::max<std::int64_t>(0, c.first_ts - plan_.workload_ts);
    // Production runs for days, but a first fault after the end of the test's workload would have no effect. (Later
    // faults may come after the duration of a fault-free run, because the first ones delay the workload.)
    return since > first_limit_ ? rounded(first_limit_ / 2) : since;
  }
  // The times after the start of the workload at which the first fault is tried.
  std::vector<std::int64_t> starts(const Candidate& first) const {
    if (plan_.workload_ts != 0) return {observed(first)};
    return points();
  }

  // Proposes the faults of `list` in sequence, once for each time at which the first one may have happened.
  void at_points(const List& list, double yield, const std::string& why) {
    const std::vector<std::int64_t> when = starts(*list.front());
    for (std::size_t i = 0; i < when.size(); ++i)
      propose(sequence(list, when[i]), when.size() == 1 ? yield : yield * point_share(i),
              when.size() == 1 || i == 0
                  ? why
                  : fmt::format("{}; {} after the workload began", why, format_duration(when[i])));
  }

  // A message may give two candidates of which only one is right: a node that stops logging has ended or is paused.
  // Both candidates have the same `why`.
  struct Interpretations {
    List likelier, other;  // the same faults with the more likely, and with the other interpretation
  };
  static Interpretations interpretations_of(const List& whole) {
    Interpretations of;
    for (const Candidate* c : whole) {
      const auto same = std::find_if(of.likelier.begin(), of.likelier.end(), [&](const Candidate* known) {
        return known->node == c->node && known->kind != c->kind && known->why == c->why;
      });
      if (same == of.likelier.end()) {
        of.likelier.push_back(c);
        of.other.push_back(c);
        continue;
      }
      const auto at = same - of.likelier.begin();
      if (c->weight > (*same)->weight) *same = c;
      else of.other[static_cast<std::size_t>(at)] = c;
    }
    if (of.other == of.likelier) of.other.clear();
    return of;
  }

  // Proposes the faults of one incident: all of them together, also with other durations, spacings and shapes, and
  // parts of them.
  void incident(const List& whole, std::size_t incidents) {
    const Interpretations interpretations = interpretations_of(whole);
    const List list = last_of(interpretations.likelier);
    const char* what = whole.size() == 1 && incidents == 1 ? "the only process or network fault"
                       : whole.size() == 1                 ? "alone, long before or after the other faults"
                       : incidents > 1 ? "the process and network faults of one time, in their order"
                                       : "all process and network faults, in their order";
    const std::string why = whole.size() == 1 ? fmt::format("{}: {}", what, whole.front()->why) : std::string(what);
    at_points(list, kSharePlain * weight_of(list),
              plan_.workload_ts != 0 ? fmt::format("{}, at the observed time", why)
                                     : fmt::format("{}; the dump does not contain the start of the workload", why));
    if (!interpretations.other.empty())
      at_points(last_of(interpretations.other), kSharePlain * kNextStep * weight_of(list),
                "the other interpretation of an event that may be an end or a pause");
    other_durations(list);
    // Move the faults closer together: otherwise the later ones come after the end of the workload, unless the first
    // ones delay it.
    const std::int64_t last = starts(*list.front()).front() + list.back()->first_ts - list.front()->first_ts;
    const double closer =
        list.size() > 1 && world_.workload_ns > 0 && last > first_limit_ ? kShareCloserFits : kShareCloser;
    propose(sequence(list, starts(*list.front()).front(), first_limit_), closer * weight_of(list),
            fmt::format("{}, closer together than observed: the workload is shorter here", what));
    wider(list);
    for (const Candidate* c : whole)
      for (const Fault& shape : shapes_of(*c)) {
        Candidate other = *c;
        other.fault = shape;
        propose(sequence({&other}, starts(*c).front()), kShareShape * c->weight,
                fmt::format("another shape of: {}", c->why));
      }
    for (const Candidate* c : whole) {
      if (c->kind != FaultKind::pause || c->since_ts == 0) continue;
      Candidate longer = *c;
      longer.first_ts = c->since_ts;
      longer.fault.duration_ns += rounded(c->first_ts - c->since_ts);
      at_points({&longer}, kShareAlone * c->weight, fmt::format("as long as it may have lasted: {}", c->why));
    }
    if (whole.size() < 2 || !world_.uses("parts")) return;
    for (const Candidate* c : whole) at_points({c}, kShareAlone * c->weight, fmt::format("alone: {}", c->why));
    if (list.size() == 3) parts(list, {{0, 1}, {1, 2}, {0, 2}});
    // Faults that are not needed may prevent the failure. If there are many faults, trying parts of them finds the
    // needed fault in few runs.
    for (std::size_t size = list.size() / 2; list.size() > 3 && size >= 2; size /= 2)
      for (std::size_t from = 0; from < list.size(); from += size) {
        const List part(list.begin() + static_cast<std::ptrdiff_t>(from),
                        list.begin() + static_cast<std::ptrdiff_t>(std::min(list.size(), from + size)));
        if (part.size() > 1)
          at_points(part, kSharePart * weight_of(part),
                    fmt::format("{} of {} process and network faults", part.size(), list.size()));
      }
  }

  // For faults that had not ended when the dump was written: they may have ended soon afterwards or may have continued,
  // so the other duration is tried too.
  void other_durations(const List& list) {
    std::vector<Candidate> others;
    others.reserve(list.size());
    List same = list;
    for (const Candidate*& c : same) {
      if (!c->other_length) continue;
      others.push_back(*c);
      others.back().fault = *c->other_length;
      c = &others.back();
    }
    if (!others.empty())
      at_points(same, kSharePlain * kNextStep * weight_of(list),
                plan_.workload_ts != 0
                    ? "as long as observed, although the fault had not ended when the dump was written"
                    : "to the end of the run, because the fault had not ended when the dump was written");
  }

  void parts(const List& list, const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
    for (const auto& [a, b] : pairs) {
      const List part{list[a], list[b]};
      at_points(part, kSharePart * weight_of(part), fmt::format("2 of {} process and network faults", list.size()));
    }
  }

  // Faults of earlier incidents are many, and each is unlikely to be the cause. Proposes several in one run. Each has a
  // time of its own and waits for no other fault, so that a fault that cannot be injected does not prevent the others.
  void old_faults_together(const std::vector<List>& incidents) {
    if (!world_.uses("groups") || incidents.size() < 3) return;
    List group;
    const auto flush = [&] {
      if (group.size() > 1) {
        std::vector<Fault> faults;
        for (std::size_t i = 0; i < group.size(); ++i) {
          Fault fault = fitted(group[i]->fault);
          fault.after.clear();
          fault.when = after_ns(
              kSecond / 2 + static_cast<std::int64_t>(i) *
                                std::max(kSecond / 2, first_limit_ * 6 / 10 / static_cast<std::int64_t>(group.size())));
          faults.push_back(std::move(fault));
        }
        propose(std::move(faults), kSharePlain * kGroupsWork * weight_of(group),
                fmt::format("{} process and network faults of different times in one run", group.size()), true);
      }
      group.clear();
    };
    for (auto it = incidents.rbegin() + 1; it != incidents.rend(); ++it)
      for (const Candidate* c : *it) {
        group.push_back(c);
        if (group.size() >= kMostOldGroup) flush();
      }
    flush();
  }

  // Proposes all faults again, but lets one of the partitions cut its node off from all others: only pairs that
  // communicate fall silent, so this partition may have been wider than the dump shows.
  void wider(const List& timed) {
    if (timed.size() < 2 || !world_.uses("shapes")) return;
    std::size_t tried = 0;
    for (std::size_t i = 0; i < timed.size(); ++i)
      for (const Fault& shape : timed[i]->alternatives) {
        if (shape.kind != FaultKind::partition || !shape.peers.empty()) continue;
        if (++tried > kMostWider) return;
        Candidate cut = *timed[i];
        cut.fault = shape;
        List list = timed;
        list[i] = &cut;
        propose(sequence(list, starts(*timed.front()).front()), kShareWider * weight_of(timed),
                fmt::format("all process and network faults, {} cut off from all others", shape.node));
      }
  }

  // Shortens a fault that lasts longer than the longest workload, because the timeout would end the workload before the
  // fault ends.
  Fault fitted(Fault fault) const {
    if (fault.duration_ns > limit_) fault.duration_ns = rounded(limit_ / 2);
    return fault;
  }

  // The faults in sequence: the first one `first_ns` after the workload began, the others with the observed spacing. If
  // the sequence would end after `most_ns`, the spacing is compressed.
  std::vector<Fault> sequence(const List& list, std::int64_t first_ns) const {
    return sequence(list, first_ns, limit_);
  }
  std::vector<Fault> sequence(const List& list, std::int64_t first_ns, std::int64_t most_ns) const {
    std::vector<Fault> faults;
    if (list.empty()) return faults;
    const std::int64_t length = list.back()->first_ts - list.front()->first_ts;
    // A sequence that exceeds even the longest workload is compressed to the duration of the workload without faults.
    const std::int64_t most = first_ns + length > limit_ ? std::min(limit_, first_limit_) : most_ns;
    const std::int64_t room = std::max(kSecond, most * 8 / 10 - first_ns);
    const double squeeze =
        first_ns + length > most && length > 0 ? static_cast<double>(room) / static_cast<double>(length) : 1.0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Fault fault = fitted(list[i]->fault);
      fault.after.clear();
      if (i == 0) {
        fault.when = after_ns(first_ns);
      } else {
        fault.after = {faults.back().id};
        fault.when = after_ns(
            static_cast<std::int64_t>(static_cast<double>(list[i]->first_ts - list[i - 1]->first_ts) * squeeze));
      }
      faults.push_back(std::move(fault));
    }
    return faults;
  }

  // Proposes pairs of failed calls: each may be harmless alone.
  void together(const List& calls) {
    List top;
    for (const Candidate* c : calls)
      if (!c->symptom && !c->profiled && c->ordinariness < 3 && top.size() < kMostPaired) top.push_back(c);
    for (std::size_t later = 1; later < top.size(); ++later)
      for (std::size_t i = 0; i < later; ++i)
        propose({top[i]->fault, top[later]->fault}, kShareTogether * std::min(top[i]->weight, top[later]->weight),
                "two failed calls together");
  }

  // The factor of the yield that follows from the survey: kOddsNeverCalled if, after the fault is armed, the deployment
  // makes so few matching calls that the fault cannot fire.
  double possible(const Fault& fault) const {
    Question question{fault.node, fault.when, visit_condition(fault)};
    const Answer* answer = world_.survey.find(question);
    if (answer == nullptr) return 1;
    if (answer->times == 0) return kOddsNeverCalled;
    return answer->times < static_cast<std::uint64_t>(fault.count) ? kOddsNeverCalled : 1;
  }

  void single_call(const Candidate& c) {
    double share = kShareCall;
    std::vector<Fault> shapes{c.fault};
    const std::vector<Fault> others = shapes_of(c);
    shapes.insert(shapes.end(), others.begin(), others.end());
    // If the call failed long after the start, shapes that are armed at a fixed time come first, because the first
    // matching calls are made during the start.
    if (const std::vector<Condition> seen = when_observed(world_, c);
        !seen.empty() && c.fault.when.empty() && comes_at_start(world_.survey, c.fault)) {
      const auto timed = [](const Fault& fault) { return !fault.when.empty(); };
      if (std::none_of(shapes.begin(), shapes.end(), timed)) {
        shapes.push_back(c.fault);
        shapes.back().when = seen;
      }
      std::stable_partition(shapes.begin(), shapes.end(), timed);
    }
    for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
      const Fault& fault = shapes[shape];
      const char* what = c.kind == FaultKind::exception ? "an exception" : "a failed call";
      propose({fault}, share * c.weight * possible(fault),
              fmt::format("{}{}{}: {}", shape == 0 ? "" : "another shape of ", what,
                          c.symptom ? ", which looks like a consequence" : "", c.why));
      share = shape == 0 ? kShareCallShape : share * 2 / 3;
    }
  }

  // Proposes to make several calls of one node fail together if they began to fail at the same time with the same
  // resource error, because they probably have one cause. A full disk, for example, makes opens, writes and syncs fail.
  void root_causes(const List& calls) {
    List left;
    for (const Candidate* c : calls)
      if (kernel::resource_error(c->fault.error) && !c->profiled && !c->symptom) left.push_back(c);
    const auto alike = [](const Candidate& c, const Candidate& head) {
      // Guessed calls, whose times are unknown, are not mixed with logged ones.
      return c.node == head.node && c.fault.error == head.fault.error && c.assumed == head.assumed &&
             std::abs(c.first_ts - head.first_ts) <= kOneRootCause;
    };
    while (!left.empty()) {
      const Candidate* head = left.front();
      List set;
      for (const Candidate* c : left)
        if (alike(*c, *head)) set.push_back(c);
      left.erase(std::remove_if(left.begin(), left.end(), [&](const Candidate* c) { return alike(*c, *head); }),
                 left.end());
      if (set.size() < 2) continue;
      if (set.size() > kMostTogether) set.resize(kMostTogether);
      std::stable_sort(set.begin(), set.end(),
                       [](const Candidate* a, const Candidate* b) { return a->first_ts < b->first_ts; });
      // Arm the faults of all calls at the time of the first failure; if that is unknown, shortly after the start of
      // the workload.
      const std::int64_t since = plan_.workload_ts != 0 ? observed(*set.front()) : kSecond / 2;
      std::vector<Fault> faults;
      for (const Candidate* c : set) {
        Fault fault = c->fault;
        fault.when.clear();
        if (since >= kSecond / 2) fault.when = after_ns(since / kTimeStep * kTimeStep);
        faults.push_back(std::move(fault));
      }
      if (lasting_error(head->fault.error) &&
          std::any_of(set.begin(), set.end(), [](const Candidate* c) { return c->fault.times == 1; }) &&
          world_.inputs->reported()) {
        std::vector<Fault> lasting = faults;
        for (Fault& fault : lasting) fault.times = -1;
        propose(std::move(lasting), kShareOneCause * kNextStep * weight_of(set),
                fmt::format("{} calls of {} fail with {} from the same time on, and continue to fail: one cause",
                            set.size(), head->node, head->error));
      }
      propose(std::move(faults), kShareOneCause * weight_of(set),
              fmt::format("{} calls of {} fail with {} from the same time on: one cause", set.size(), head->node,
                          head->error));
    }
  }

  // Proposes a clock that was wrong all the time: alone, with the process and network faults, and with the likeliest
  // call.
  void wrong_clock(const Candidate& c, const List& timed, const List& calls) {
    for (std::size_t shape = 0; shape <= c.alternatives.size(); ++shape) {
      const Fault& clock = shape == 0 ? c.fault : c.alternatives[shape - 1];
      const double part = shape == 0 ? 1 : kNextStep;
      propose({clock}, kSharePlain * part * c.weight, fmt::format("a wrong clock: {}", c.why));
      if (!timed.empty()) {
        std::vector<Fault> faults = sequence(timed, starts(*timed.front()).front());
        faults.insert(faults.begin(), clock);
        propose(std::move(faults), kShareMixed * part * (c.weight + weight_of(timed)),
                "a wrong clock, and the process and network faults");
      }
      if (!calls.empty() && !calls.front()->symptom)
        propose({clock, calls.front()->fault}, kShareMixed * part * c.weight,
                "a wrong clock, and the likeliest failed call");
    }
  }

  // Proposes a clock that was set: alone, among the process and network faults, and with the likeliest call.
  void set_clock(const Candidate& c, const List& timed, const List& calls) {
    at_points({&c}, kSharePlain * c.weight, fmt::format("a clock that is set: {}", c.why));
    for (const Fault& shape : c.alternatives) {
      Candidate other = c;
      other.fault = shape;
      at_points({&other}, kSharePlain * kNextStep * c.weight, fmt::format("a clock that is set: {}", c.why));
    }
    if (!timed.empty()) {
      List both = timed;
      both.insert(std::upper_bound(both.begin(), both.end(), &c,
                                   [](const Candidate* a, const Candidate* b) { return a->first_ts < b->first_ts; }),
                  &c);
      propose(sequence(both, starts(*both.front()).front()), kShareMixed * (c.weight + weight_of(timed)),
              "a clock that is set among the process and network faults");
    }
    if (!calls.empty() && !calls.front()->symptom) {
      std::vector<Fault> faults = sequence({&c}, starts(c).front());
      faults.push_back(calls.front()->fault);
      propose(std::move(faults), kShareMixed * c.weight, "a clock that is set, and the likeliest failed call");
    }
  }

  // Proposes equal clock steps of several nodes together: nodes of one host share one clock.
  void set_together(const List& clocks) {
    std::map<std::pair<std::int64_t, std::int64_t>, List> by_step;
    for (const Candidate* c : clocks)
      if (c->stepped) by_step[{c->first_ts, c->fault.clock.shift_ns}].push_back(c);
    for (const auto& [step, list] : by_step)
      if (list.size() > 1)
        at_points(list, kSharePlain * weight_of(list),
                  fmt::format("the clock of {} nodes is set: {}", list.size(), list.front()->why));
  }

  // Of the process and network faults that concern the call's node, the one closest to `at`, a time at which the call
  // failed. nullptr if it is more than kOneRootCause away, or if another fault is not kFarApart times as far away.
  static const Candidate* neighbour_of(const Candidate& c, std::int64_t at, const List& timed) {
    const auto apart = [&](const Candidate* t) { return std::abs(t->first_ts - at); };
    const auto concerns = [&](const Candidate& t) {
      const std::vector<std::string>& peers = t.fault.peers;
      return t.node == c.node || (t.kind == FaultKind::partition &&
                                  (peers.empty() || std::find(peers.begin(), peers.end(), c.node) != peers.end()));
    };
    const Candidate* nearest = nullptr;
    for (const Candidate* t : timed)
      if (concerns(*t) && (nearest == nullptr || apart(t) < apart(nearest))) nearest = t;
    if (nearest == nullptr || apart(nearest) > kOneRootCause) return nullptr;
    const bool lonely = std::all_of(timed.begin(), timed.end(), [&](const Candidate* t) {
      return t == nearest || apart(t) > kFarApart * apart(nearest);
    });
    return lonely ? nearest : nullptr;
  }

  // Proposes the call together with its neighbour. If the call also failed at other times, it may have failed only once
  // at this time, so a single failure is proposed, too.
  void with_neighbour(const Candidate& c, std::int64_t at, const Candidate& neighbour) {
    const double yield = kShareNeighbours * std::min(c.weight, kMuchLessLikely * neighbour.weight);
    mixed(c, c.fault, at, {&neighbour}, yield);
    if (c.fault.times == 1 || c.last_ts - c.first_ts <= limit_) return;
    Fault once = c.fault;
    once.times = 1;
    mixed(c, std::move(once), at, {&neighbour}, kNextStep * yield);
  }

  // Proposes a failed call (as `fault`, at time `at`) among the process and network faults, in the order of the dump.
  void mixed(const Candidate& c, Fault fault, std::int64_t at, const List& timed, double yield) {
    std::vector<Fault> faults = sequence(timed, starts(*timed.front()).front());
    fault.when.clear();
    fault.after.clear();
    std::size_t before = 0;  // number of process and network faults that came earlier
    while (before < timed.size() && timed[before]->first_ts <= at) ++before;
    if (before > 0) {
      fault.after = {faults[before - 1].id};
    } else {
      fault.when = c.fault.when;
      faults.front().after = {fault.id};
      faults.front().when = after_ns(std::min(timed.front()->first_ts - at, first_limit_ / 4));
    }
    faults.insert(faults.begin() + static_cast<std::ptrdiff_t>(before), std::move(fault));
    // A call that the deployment never makes without faults may be made because of them. That is not assumed if the
    // message of the call may also refer to a call that is made without faults.
    const bool another = std::any_of(plan_.candidates.begin(), plan_.candidates.end(), [&](const Candidate& other) {
      return &other != &c && other.plainness < 1 && other.node == c.node && other.why == c.why &&
             possible(other.fault) >= 1;
    });
    if (before > 0 && possible(c.fault) < 1 && !another) yield = std::max(yield, kShareCall * c.weight);
    propose(std::move(faults), yield,
            timed.size() == 1
                ? fmt::format("a failed call, and the fault {} it: {}", before > 0 ? "before" : "after", timed[0]->why)
                : std::string("the process and network faults together with a failed call"));
  }

  const World& world_;
  const Plan& plan_;
  const config::Config& config_;
  std::int64_t span_ = 0;         // duration of the workload; if unknown, of the dump, up to limit_
  std::int64_t limit_ = 0;        // longest duration of the workload: its timeout
  std::int64_t first_limit_ = 0;  // longest duration without faults
  std::vector<Trial> trials_;
  std::map<std::string, std::size_t> seen_;
};

}  // namespace

std::vector<Trial> plain_trials(const World& world) { return Builder(world).build(); }

}  // namespace rose::diagnose
