#include "diagnose/stops.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "diagnose/context.h"
#include "diagnose/words.h"
#include "weights/weights.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostStops = 16;  // number of stops after one context
constexpr std::size_t kFirstKnown = 4;  // number of calls of the control run that are tried before the general stops
constexpr std::size_t kOwnFiles = 2;    // number of files of the context whose writes are counted
constexpr int kMostCount = 3;           // number of stops at calls of one kind

// The state-changing calls of `node` that follow the point at which all conditions were met in order. If no call
// follows that point, returns the calls that follow the last condition alone. If all conditions are times, the point is
// the sum of the times.
std::vector<Stop> calls_after(const trace::Trace& trace, std::string_view node, const std::vector<Condition>& when) {
  std::vector<Condition> wanted;
  std::int64_t elapsed_ns = 0;
  for (const Condition& c : when) {
    if (c.kind == ConditionKind::function || c.kind == ConditionKind::syscall) wanted.push_back(c);
    if (c.kind == ConditionKind::elapsed) elapsed_ns += c.elapsed_ns;
  }
  const auto follow = [&](const std::vector<Condition>& conditions) {
    std::vector<Stop> stops;
    std::map<std::string, int> counts;
    std::size_t met = 0;
    int seen = 0;
    std::int64_t met_ts = conditions.empty() ? trace.meta.workload_ts + elapsed_ns : 0;
    for (const trace::Event& event : trace.events) {
      if (event.ts_ns < met_ts) continue;
      if (event.type != trace::EventType::af && event.type != trace::EventType::sys) continue;
      const std::string_view of = event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node);
      if (of != node) continue;
      if (met < conditions.size()) {
        if (!meets(trace, event, conditions[met]) || ++seen < conditions[met].count) continue;
        ++met;
        seen = 0;
        met_ts = event.ts_ns;
        continue;
      }
      if (event.type != trace::EventType::sys) continue;
      if (event.ts_ns - met_ts > kFollowsContext || stops.size() >= kMostStops) break;
      const std::optional<ContextEvent> call = context_event(trace, event, node);
      if (!call) continue;
      stops.push_back({call->condition.call, ++counts[call->key]});
    }
    return stops;
  };
  if (wanted.empty() && (elapsed_ns == 0 || trace.meta.workload_ts == 0)) return {};
  std::vector<Stop> stops = follow(wanted);
  if (stops.empty() && wanted.size() > 1) stops = follow({wanted.back()});
  return stops;
}

CallMatch call_of(const char* syscall) {
  CallMatch call;
  call.syscall = syscall;
  return call;
}

// Stops for which no trace is needed: writes are too frequent to be traced, although a crash between two of them may
// matter, and the calls that a node makes only after a fault do not occur in a fault-free run.
std::vector<Stop> general_stops() {
  return {{call_of("write"), 1},    {call_of("write"), 2},    {call_of("f*sync"), 1},
          {call_of("rename*"), 1},  {call_of("unlink*"), 1},  {call_of("openat"), 1},
          {call_of("pwrite64"), 1}, {call_of("pwrite64"), 2}, {call_of("write"), 3}};
}

// True for calls whose effect remains after the node has ended.
bool lasting(std::string_view syscall) {
  return syscall.find("write") != std::string_view::npos || syscall == "rename*" || syscall == "unlink*" ||
         syscall == "ftruncate";
}

bool same(const Stop& a, const Stop& b) { return a.call == b.call && a.count == b.count; }

}  // namespace

Stops::Stops(const trace::Trace* control, const Fault& moved) {
  if (control != nullptr) known_ = calls_after(*control, moved.node, moved.when);
  // Writes to the files of the context come first, because a file that was just created or truncated may be incomplete
  // after a crash.
  for (auto it = moved.when.rbegin(); it != moved.when.rend() && own_ < 3 * kOwnFiles; ++it) {
    if (it->kind != ConditionKind::syscall || !it->call.path) continue;
    for (const char* syscall : {"write", "pwrite64", "writev"}) {
      CallMatch call = call_of(syscall);
      call.path = it->call.path;
      if (std::find(kinds_.begin(), kinds_.end(), call) == kinds_.end()) kinds_.push_back(std::move(call));
    }
    own_ = kinds_.size();
  }
  for (const char* syscall : {"write", "pwrite64", "writev", "pwritev*", "sendto", "sendm*", "f*sync", "rename*",
                              "unlink*", "openat", "ftruncate"})
    kinds_.push_back(call_of(syscall));
  // Calls that wait matter only for pauses: a crash has the same effect before and during the wait, but a paused node
  // misses what it waits for.
  if (moved.kind == FaultKind::pause)
    for (const char* syscall : {"read", "recv*", "*poll*", "*select*"}) kinds_.push_back(call_of(syscall));
  at_call_ = !moved.when.empty() && moved.when.back().kind == ConditionKind::syscall;

  take_known(0, kFirstKnown);
  for (const Stop& stop : general_stops()) take(stop);
  take_known(kFirstKnown, known_.size());
}

void Stops::use_counts(const std::vector<Seen>& seen) {
  stops_.clear();
  taken_.clear();
  std::vector<std::size_t> order;  // indexes of kinds that followed the context, the earliest first
  for (std::size_t i = own_; i < kinds_.size(); ++i)
    if (seen[i].times > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return seen[a].after_ns < seen[b].after_ns; });
  const auto take_kind = [&](std::size_t i, int count) {
    if (seen[i].times >= static_cast<std::uint64_t>(count)) take({kinds_[i], count});
  };
  const auto take_own = [&](int count) {
    for (std::size_t i = 0; i < own_; ++i) take_kind(i, count);
  };
  // True if the control run contains that many calls of the kind. The stops from the control run are then preferred,
  // because they have the path of the call.
  const auto named = [&](std::size_t i, int count) {
    return std::count_if(known_.begin(), known_.end(),
                         [&](const Stop& stop) { return glob_match(kinds_[i].syscall, stop.call.syscall); }) >= count;
  };
  // True for the first call after a context that ends with a call. A stop there is tried last, because it is nearly the
  // same point as a stop right after the context, which level 2 has tried.
  const auto late = [&](std::size_t i, int count) { return count == 1 && at_call_ && i == order.front(); };
  const auto take_all = [&](int count) {
    for (const std::size_t i : order)
      if (!named(i, count) && !late(i, count)) take_kind(i, count);
  };
  // First stop between two writes to a file of the context, when its content is neither the old nor the new one.
  take_own(2);
  take_known(0, kFirstKnown);
  // If the context has no file, stop between the first two calls of a kind, if there are so few of them that all may
  // belong to one change.
  for (const std::size_t i : order)
    if (own_ == 0 && seen[i].times <= kFewTimesAfter && lasting(kinds_[i].syscall) && !named(i, 2)) take_kind(i, 2);
  take_all(1);
  take_own(3);
  for (int count = 2; count <= kMostCount; ++count) take_all(count);
  take_known(kFirstKnown, known_.size());
  take_own(1);
  if (at_call_ && !order.empty()) take_kind(order.front(), 1);
}

std::optional<Stop> Stops::next() {
  if (stops_.empty()) return std::nullopt;
  Stop stop = std::move(stops_.front());
  stops_.pop_front();
  return stop;
}

void Stops::take(const Stop& stop) {
  if (taken_.size() >= kMostStops) return;
  if (std::any_of(taken_.begin(), taken_.end(), [&](const Stop& other) { return same(stop, other); })) return;
  taken_.push_back(stop);
  stops_.push_back(stop);
}

void Stops::take_known(std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < std::min(to, known_.size()); ++i) take(known_[i]);
}

}  // namespace rose::diagnose
