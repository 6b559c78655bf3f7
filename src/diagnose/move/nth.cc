// Level 2: faults at the nth matching call instead of the first. To find the one call that matters among many, all
// calls of a range are made to fail in one run; the search halves a range that reproduces the bug. If the failure of
// several calls hides the bug, single calls are tried.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "diagnose/move.h"

namespace rose::diagnose {
namespace {

constexpr int kFewCalls = 3;  // ranges of up to twice this size are not split; their calls are tried one by one

class NthMove final : public Move {
 public:
  // `id`: the fault of `base` whose calls are counted. `most`: the number of its calls. `known`: that number is
  // certain.
  NthMove(const World& world, Schedule base, std::string id, int most, bool known, double prior, std::string why)
      : world_(world),
        base_(std::move(base)),
        id_(std::move(id)),
        most_(most),
        prior_(prior),
        why_(std::move(why)),
        works_(world.uses("ranges") && known ? kGroupsWork : kGroupsWork / 2) {
    double sum = 0;
    for (int n = 1; n <= most_; ++n) {
      chance_.push_back((1 - kEarlyCalls) / most_);
      sum += 1.0 / n;
    }
    for (int n = 1; n <= most_; ++n) chance_[static_cast<std::size_t>(n - 1)] += kEarlyCalls / (n * sum);
    if (!world.uses("ranges")) works_ = 0;
    if (most_ > kFewCalls && quicker({1, most_})) ranges_.push_back({1, most_});
  }

  NextTrial peek() override {
    if (pending_ || ended_) return nullptr;
    const Span span = choose();
    if (span.first == 0) return nullptr;
    Trial t;
    t.level = 2;
    t.schedule = base_;
    for (Fault& fault : t.schedule.faults) {
      if (fault.id != id_) continue;
      fault.count = span.first;
      fault.times = span.last - span.first + 1;
    }
    t.yield = prior_ * world_.average_factor(base_) * value(span);
    t.many = span.last > span.first;
    const bool visits = base_.find(id_)->kind == FaultKind::exception;
    const char* what = visits ? "visit" : "matching call";
    t.why = t.many ? fmt::format("the {} to {} {}: {}", ordinal_text(span.first), ordinal_text(span.last), what, why_)
                   : fmt::format("the {} {}: {}", ordinal_text(span.first), what, why_);
    return std::make_shared<const Trial>(std::move(t));
  }

  void take() override {
    running_ = choose();
    pending_ = true;
  }

  std::unique_ptr<Move> clone() const override { return std::make_unique<NthMove>(*this); }

  void learn(const Trial&, const TrialOutcome& run) override {
    pending_ = false;
    const schedule::FaultOutcome* outcome = outcome_of(*run.result, id_);
    const bool fired = outcome != nullptr && outcome->fired;
    const bool range = running_.last > running_.first;
    std::erase(ranges_, running_);
    if (!range) chance_[static_cast<std::size_t>(running_.first - 1)] = 0;
    if (!fired) {
      // The node makes fewer calls, so later ones need not be tried. One inconclusive run does not show this, but two
      // do.
      if (run.result->oracle != OracleAnswer::unknown || ++inconclusive_ > 1) limit_to(running_.first - 1);
      if (range) works_ /= 2;
      return;
    }
    inconclusive_ = 0;
    // The node made fewer calls than the range has, perhaps because the failed calls changed its behaviour.
    if (range && outcome->injected > 0 &&
        running_.first + static_cast<int>(std::min<std::uint64_t>(outcome->injected, 1'000'000)) - 1 < running_.last &&
        run.result->oracle == OracleAnswer::miss)
      works_ *= 0.7;
    if (!range || run.result->oracle != OracleAnswer::miss || !outcome->effective()) return;
    // Bayes: either the failure of several calls hides the bug here, or the right call is not in this range.
    const double part = sum(running_) / std::max(1e-12, sum({1, most_}));
    const double missed = 1 - kRangeReproduces * part;
    works_ = works_ * missed / (works_ * missed + (1 - works_));
    if (running_.last - running_.first + 1 > 2 * kFewCalls) {
      const int middle = (running_.first + running_.last) / 2;
      for (const Span half : {Span{running_.first, middle}, Span{middle + 1, running_.last}})
        if (quicker(half)) ranges_.push_back(half);
    }
  }

 private:
  struct Span {
    int first = 0;
    int last = 0;  // inclusive
    bool operator==(const Span&) const = default;
  };

  // The probability that the right call is in the span.
  double sum(const Span& span) const {
    double chance = 0;
    for (int n = span.first; n <= std::min<int>(span.last, static_cast<int>(chance_.size())); ++n)
      chance += chance_[static_cast<std::size_t>(n - 1)];
    return chance;
  }
  // The probability that the failure of these calls reproduces the bug.
  double value(const Span& span) const {
    return span.last > span.first ? works_ * kRangeReproduces * sum(span) : kReproduces * sum(span);
  }

  // True if a range and its halves find the right call in fewer expected runs than single calls do, provided that the
  // right call is in the span. Single calls, most likely first, take the sum of i * chance(i) runs. A range takes 1
  // run. With probability `reproduces`, it reproduces the bug, and log2(size) further runs then take the place of the
  // single calls.
  bool quicker(const Span& span) const {
    std::vector<double> chances;
    for (int n = span.first; n <= span.last; ++n) chances.push_back(chance_[static_cast<std::size_t>(n - 1)]);
    std::sort(chances.rbegin(), chances.rend());
    double singles = 0;
    for (std::size_t i = 0; i < chances.size(); ++i) singles += static_cast<double>(i + 1) * chances[i];
    singles /= std::max(1e-12, sum(span));
    const double reproduces = works_ * kRangeReproduces;
    return reproduces * singles > 1 + reproduces * std::log2(static_cast<double>(span.last - span.first + 1));
  }

  // The range or single call with the highest value; {0, 0} if nothing is left.
  Span choose() const {
    Span best;
    double most = 0;
    for (const Span& span : ranges_)
      if (value(span) > most) {
        most = value(span);
        best = span;
      }
    for (int n = 1; n <= most_; ++n)
      if (const Span each_span{n, n}; value(each_span) > most) {
        most = value(each_span);
        best = each_span;
      }
    return best;
  }

  // Learns that the node makes at most `most` calls.
  void limit_to(int most) {
    most_ = std::min(most_, most);
    if (most_ < 1) ended_ = true;
    for (std::size_t n = static_cast<std::size_t>(std::max(0, most_)); n < chance_.size(); ++n) chance_[n] = 0;
    for (Span& span : ranges_) span.last = std::min(span.last, most_);
    std::erase_if(ranges_, [](const Span& span) { return span.last <= span.first; });
  }

  const World& world_;
  const Schedule base_;
  const std::string id_;
  int most_;
  const double prior_;
  const std::string why_;
  double works_;                // probability that the failure of several calls does not hide the bug
  std::vector<double> chance_;  // by n - 1: the probability that the nth call is the right one
  std::vector<Span> ranges_;    // ranges that were not tried yet
  Span running_;
  int inconclusive_ = 0;
  bool pending_ = false;
  bool ended_ = false;
};

// The number of calls matching the fault that the node makes in a run without faults, up to syscall_attempts. `known`:
// set to true if this number comes from the survey.
int most_calls(const World& world, const Fault& fault, bool& known) {
  int most = std::max(1, world.config->diagnose.syscall_attempts);
  known = false;
  Question question{fault.node, fault.when, visit_condition(fault)};
  if (const Answer* answer = world.survey.find(question)) {
    known = true;
    return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(most), answer->times));
  }
  if (fault.kind != FaultKind::syscall || !world.inputs->profile || world.inputs->profile->runs < 1) return most;
  const profile::Profile& profile = *world.inputs->profile;
  const auto runs = static_cast<std::uint64_t>(profile.runs);
  const auto node = profile.syscalls.find(fault.node);
  if (node == profile.syscalls.end()) return most;
  const auto call = node->second.find(fault.call.syscall);
  // A call that the profile does not contain may be made only after faults, so its number is not limited.
  if (call != node->second.end())
    most = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(most),
                                                    std::max<std::uint64_t>(1, (call->second + runs - 1) / runs)));
  return most;
}

}  // namespace

std::unique_ptr<Move> nth_move(const World& world, const Schedule& base, const std::string& id, double prior,
                               std::string why) {
  const Fault* fault = base.find(id);
  if (fault == nullptr) return nullptr;
  bool known = false;
  const int most = most_calls(world, *fault, known);
  if (most < 1) return nullptr;
  return std::make_unique<NthMove>(world, base, id, most, known && fault->after.empty(), prior, std::move(why));
}

Moves nth_moves(const World& world) {
  Moves moves;
  if (!world.uses("nth")) return moves;
  // Adds a move for each place that may throw the exception; the move varies the ordinal of the visit.
  const auto exception_moves = [&world](const Candidate& c, const auto& add) {
    double prior = kShareNth * c.weight;
    std::set<std::string> places;
    std::set<std::uint64_t> counts;
    for (std::size_t shape = 0; shape <= c.alternatives.size(); ++shape) {
      Schedule base;
      base.name = world.config->name;
      base.faults = {shape == 0 ? c.fault : c.alternatives[shape - 1]};
      Fault& fault = base.faults[0];
      fault.when.clear();
      fault.count = 1;
      fault.times = 1;
      if (!places.insert(schedule::fingerprint(base)).second) continue;
      // If a place is reached as often as another one, both are probably reached in the same visits, so that trying
      // both adds little.
      if (const Answer* answer = world.survey.find({fault.node, {}, visit_condition(fault)});
          answer != nullptr && !counts.insert(answer->times).second)
        prior *= kNextStep;
      add(base, fault.id, prior, c.why);
      prior *= kNextStep;
    }
  };
  const auto add = [&](const Schedule& base, const std::string& id, double prior, std::string why) {
    if (std::unique_ptr<Move> move = nth_move(world, base, id, prior, std::move(why))) moves.push_back(std::move(move));
  };
  for (const Candidate& c : world.plan.candidates) {
    if (c.kind == FaultKind::exception) {
      exception_moves(c, add);
      continue;
    }
    if (c.kind != FaultKind::syscall || !can_fail_calls(*world.inputs, c.node)) continue;
    Schedule base;
    base.name = world.config->name;
    base.faults = {c.fault};
    Fault& fault = base.faults[0];
    fault.after.clear();
    fault.when.clear();
    fault.count = 1;
    fault.times = 1;
    add(base, fault.id, kShareNth * c.weight, c.why);
    // Also try the nth call after about the time at which the call failed.
    const Fault* timed = !c.fault.when.empty() ? &c.fault : nullptr;
    for (const Fault& shape : c.alternatives)
      if (timed == nullptr && !shape.when.empty() && shape.call == c.fault.call) timed = &shape;
    if (timed != nullptr) {
      Schedule later = base;
      later.faults[0].when = timed->when;
      add(later, fault.id, kShareNth * kNextStep * kNextStep * c.weight,
          fmt::format("counted from about the time at which the call failed; {}", c.why));
    }
  }
  // The nth call after the process and network faults that precede it: "cut n1, then the 3rd write fails".
  std::set<std::string> seen;
  for (const schedule::Schedule& schedule : world.plan.schedules) {
    for (const Fault& fault : schedule.faults) {
      if (!hits_by_count(fault.kind) || fault.after.empty()) continue;
      const Candidate* c = world.candidate(fault.id);
      if (c == nullptr || !seen.insert(fault.id).second) continue;
      Schedule base = schedule;
      for (Fault& f : base.faults)
        if (f.id == fault.id) f.count = f.times = 1;
      add(base, fault.id, kShareMixedNth * c->weight, fmt::format("after the faults that preceded it; {}", c->why));
    }
  }
  return moves;
}

}  // namespace rose::diagnose
