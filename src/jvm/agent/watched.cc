#include "jvm/agent/watched.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "jvm/agent/stubs.h"
#include "jvm/agent/system.h"
#include "jvm/agent/values.h"

namespace rose::jvm {
namespace {

// The cost of an entry: if entries are counted, only the breakpoint's callback runs; if they are reported, the thread
// also enters the kernel.
constexpr double kCountSeconds = 0.3e-6;
constexpr double kReportSeconds = 7e-6;
// The cost of setting or removing a breakpoint: the JVM stops its threads for one or two milliseconds, discards the
// compiled code of the method and of all methods that inline it, and compiles them again.
constexpr double kAgainSeconds = 30e-3;
constexpr std::size_t kMostAgain = 1;  // at most this many methods are watched again per check
constexpr std::int64_t kEstimateNs = 250'000'000;

RateLimits limits_of(const WatchSpec& spec) {
  RateLimits limits;
  limits.entry_seconds = spec.count ? kCountSeconds : kReportSeconds;
  if (spec.count) {
    limits.hot_rate = 2 * spec.rate;
    limits.pause_seconds = 1;
    return limits;
  }
  limits.share = spec.share;
  limits.attach_seconds = kAgainSeconds;
  limits.burst_seconds = 5;
  limits.hot_rate = spec.rate;
  limits.window_seconds = 10;
  limits.hot_calls = std::max<std::uint64_t>(8, static_cast<std::uint64_t>(spec.rate * limits.window_seconds));
  limits.pause_seconds = 10;
  limits.longest_pause_seconds = 600;
  return limits;
}

}  // namespace

void WatchedMethods::begin(const WatchSpec& spec) {
  spec_ = &spec;
  rates_ = new FunctionRates(kStateMethods + kStateEscapes, 1, limits_of(spec));
  counts_.resize(kStateMethods + kStateEscapes);
}

bool WatchedMethods::may_be_in(std::string_view class_name, std::string_view source) const {
  if (spec_ == nullptr) return false;
  if (source.empty() ? !spec_->sources.empty()
                     : std::binary_search(spec_->sources.begin(), spec_->sources.end(), source))
    return true;
  if (std::binary_search(spec_->classes.begin(), spec_->classes.end(), class_name)) return true;
  for (const NamePattern* pattern : spec_->functions) {
    if (pattern->may_be_in(class_name)) return true;
  }
  return false;
}

bool WatchedMethods::wants(const Method& method, std::string_view display) const {
  // When HotSpot's C2 compiles a method, it analyses each called method that returns an object, even if the call is in
  // an exception handler that never runs. If such a called method has a breakpoint, C2 discards the result and starts
  // again each time, so that busy callers stay slow.
  if (spec_->lasting && is_object(returned(method.descriptor).front())) return false;
  if (std::binary_search(spec_->methods.begin(), spec_->methods.end(), display)) return true;
  // Methods that a compiler generated, except lambdas, are in no source file.
  const bool made = (method.flags & (kSynthetic | kBridge)) != 0 && method.name.substr(0, 7) != "lambda$";
  if (made) return false;
  if (std::binary_search(spec_->sources.begin(), spec_->sources.end(), method.source)) return true;
  for (const NamePattern* pattern : spec_->functions) {
    if (pattern->matches(method)) return true;
  }
  return false;
}

Watched* WatchedMethods::of(MethodId method, std::string_view display, State& state) {
  const auto less = [](const auto& entry, MethodId wanted) { return entry.first < wanted; };
  const auto at = std::lower_bound(by_method_.begin(), by_method_.end(), method, less);
  if (at != by_method_.end() && at->first == method) return at->second;
  // Methods may not use all records, because some are reserved for exceptions.
  Watched* watched = by_method_.size() < kStateMethods ? add(display, state) : nullptr;
  if (watched == nullptr) {
    if (!full_) state.note("too many methods are requested, so some are not watched: name fewer");
    full_ = true;
    return nullptr;
  }
  watched->method = method;
  by_method_.insert(at, {method, watched});
  return watched;
}

Watched* WatchedMethods::add(std::string_view display, State& state) {
  StateRecord* record = all_.size() < kStateMethods + kStateEscapes ? state.add(RecordKind::method, display) : nullptr;
  if (record == nullptr) return nullptr;
  auto* name = static_cast<char*>(std::calloc(1, record->length + 1));
  if (name == nullptr) return nullptr;
  std::memcpy(name, record->text, record->length);
  auto* watched = new Watched{.index = all_.size(), .name = name, .record = record};
  all_.push_back(watched);
  return watched;
}

void WatchedMethods::held(Watched& watched) {
  rates_->attached(watched.index, now_ns(), counts_);
  __atomic_fetch_or(&watched.record->flags, kMethodWatched, __ATOMIC_RELAXED);
}

void WatchedMethods::entered(const Watched& watched) const {
  __atomic_fetch_add(&watched.record->count, 1, __ATOMIC_RELAXED);
  if (!spec_->count) rose_jvm_enter(watched.name, 0);
}

WatchedMethods::Changes WatchedMethods::look() {
  Changes changes;
  const std::int64_t now = now_ns();
  for (const Watched* one : all_) counts_[one->index] = __atomic_load_n(&one->record->count, __ATOMIC_RELAXED);
  for (const std::uint32_t index : rates_->to_detach(now, counts_)) {
    Watched* one = all_[index];
    one->gaps = true;
    __atomic_fetch_and(&one->record->flags, ~kMethodWatched, __ATOMIC_RELAXED);
    changes.gone.push_back(one);
  }
  for (const std::uint32_t index : rates_->due(now, kMostAgain)) changes.again.push_back(all_[index]);
  if (now - estimated_ns_ >= kEstimateNs || !changes.gone.empty()) write_estimates(now);
  return changes;
}

void WatchedMethods::write_estimates(std::int64_t now) {
  estimated_ns_ = now;
  for (const Watched* one : all_) {
    if (!one->gaps) continue;
    const auto estimate = rates_->estimate(one->index, 0, now, counts_, spec_->rate);
    const double unseen = estimate.calls - static_cast<double>(counts_[one->index]);
    __atomic_store_n(&one->record->unseen, unseen > 0 ? static_cast<std::uint64_t>(unseen * 1000) : 0,
                     __ATOMIC_RELAXED);
    if (estimate.known) __atomic_fetch_and(&one->record->flags, ~kMethodUnknown, __ATOMIC_RELAXED);
    else __atomic_fetch_or(&one->record->flags, kMethodUnknown, __ATOMIC_RELAXED);
  }
}

}  // namespace rose::jvm
