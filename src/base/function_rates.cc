#include "base/function_rates.h"

#include <algorithm>
#include <cmath>

namespace rose {
namespace {

constexpr int kPauseGrowth = 4;
// Overspending is repaid by not taking samples, but for no longer than this many seconds.
constexpr double kLongestDebt = 5;
// A function that was just attached may run at full speed until the next check, so this time is budgeted for it.
constexpr double kSampleSeconds = 0.02;
// The hottest functions are chosen by a rate in which newer entries count more: the weight of an entry falls by a
// factor of e in this time.
constexpr double kRecentSeconds = 1;

double seconds(std::int64_t ns) { return std::max(1e-6, static_cast<double>(ns) / 1e9); }
std::int64_t to_ns(double value) { return static_cast<std::int64_t>(value * 1e9); }

}  // namespace

FunctionRates::FunctionRates(std::size_t functions, std::size_t nodes, const RateLimits& limits)
    : nodes_(nodes),
      limits_(limits),
      functions_(functions),
      per_node_(functions * nodes),
      tokens_(limits.share * limits.burst_seconds) {}

std::uint64_t FunctionRates::total(std::size_t function, std::span<const std::uint64_t> counts) const {
  std::uint64_t sum = 0;
  for (std::size_t node = 0; node < nodes_; ++node) sum += counts[function * nodes_ + node];
  return sum;
}

void FunctionRates::attached(std::size_t index, std::int64_t now_ns, std::span<const std::uint64_t> counts) {
  auto& function = functions_[index];
  if (function.first_ns == 0) {
    function.first_ns = now_ns;
    function.pause_ns = to_ns(limits_.pause_seconds);
  } else {
    function.gap_ns = now_ns - function.since_ns;
    tokens_ -= limits_.attach_seconds;
  }
  function.attached = true;
  function.since_ns = now_ns;
  function.window_ns = now_ns;
  function.begin = function.last = function.window = total(index, counts);
  function.recent_rate = 0;
  for (std::size_t node = 0; node < nodes_; ++node)
    per_node_[index * nodes_ + node].begin = counts[index * nodes_ + node];
}

// Estimates the calls in the gap, the time before this period in which the function was not watched. Assumes that the
// rate in the gap was the lower of the rates before and after it. If a burst at the start was followed by silence, the
// burst ended somewhere in the gap; if a function was hot before and after, it was hot in between. One call is added to
// the period after the gap, so that a short period without calls is weak evidence.
double FunctionRates::gap_calls(const Function& function, const PerNode& node, std::int64_t now_ns,
                                std::uint64_t count) const {
  if (function.gap_ns == 0) return 0;
  const double after = static_cast<double>(count - node.begin + 1) / seconds(now_ns - function.since_ns);
  return seconds(function.gap_ns) * std::min(node.rate_before, after);
}

void FunctionRates::end_stint(std::size_t index, std::int64_t now_ns, std::span<const std::uint64_t> counts) {
  auto& function = functions_[index];
  const std::int64_t stint_ns = now_ns - function.since_ns;
  function.last_rate = static_cast<double>(total(index, counts) - function.begin) / seconds(stint_ns);
  for (std::size_t node = 0; node < nodes_; ++node) {
    auto& own = per_node_[index * nodes_ + node];
    const auto count = counts[index * nodes_ + node];
    own.filled += gap_calls(function, own, now_ns, count);
    own.rate_before = static_cast<double>(count - own.begin) / seconds(stint_ns);
  }
  // The first pause is not lengthened, so that the first sample comes early. If a function stayed attached for more
  // than four times its last pause, it was quiet. Its behaviour has therefore changed, and it starts over with the
  // shortest pause.
  if (function.watched_ns > 0) {
    const bool quiet = stint_ns > 4 * function.pause_ns;
    function.pause_ns = quiet ? to_ns(limits_.pause_seconds)
                              : std::min(function.pause_ns * kPauseGrowth, to_ns(limits_.longest_pause_seconds));
  }
  function.watched_ns += stint_ns;
  function.attached = false;
  function.since_ns = now_ns;
}

void FunctionRates::failed(std::size_t index, std::int64_t now_ns, std::span<const std::uint64_t> counts) {
  auto& function = functions_[index];
  if (function.attached) end_stint(index, now_ns, counts);
  else function.pause_ns = std::min(function.pause_ns * kPauseGrowth, to_ns(limits_.longest_pause_seconds));
  function.failed = true;
  function.retry_ns = now_ns + function.pause_ns;
}

std::vector<std::uint32_t> FunctionRates::to_detach(std::int64_t now_ns, std::span<const std::uint64_t> counts) {
  std::vector<std::uint32_t> gone;
  const double passed = looked_ns_ == 0 ? 0 : seconds(now_ns - looked_ns_);
  looked_ns_ = now_ns;
  struct Recent {
    double rate;
    std::uint32_t function;
  };
  std::vector<Recent> kept;
  const double fading = std::exp(-passed / kRecentSeconds);
  std::uint64_t all = 0;
  double staying = 0;
  for (std::uint32_t i = 0; i < functions_.size(); ++i) {
    auto& function = functions_[i];
    // A function that was just detached may still be entered until its probe is removed, so its entries are counted,
    // too.
    const std::uint64_t count = total(i, counts);
    const std::uint64_t recent = count - function.last;
    function.last = count;
    all += recent;
    if (!function.attached) continue;
    function.recent_rate = function.recent_rate * fading + static_cast<double>(recent) / kRecentSeconds;
    staying += function.recent_rate;
    kept.push_back({function.recent_rate, i});
    if (recent == 0) continue;
    if (limits_.window_seconds > 0 && seconds(now_ns - function.window_ns) > limits_.window_seconds) {
      function.window_ns = now_ns;
      function.window = count - recent;
    }
    const std::uint64_t calls = count - function.window;
    if (limits_.hot_rate > 0 && calls >= limits_.hot_calls &&
        static_cast<double>(calls) / seconds(now_ns - function.window_ns) >= limits_.hot_rate) {
      end_stint(i, now_ns, counts);
      gone.push_back(i);
      staying -= function.recent_rate;
      kept.pop_back();
    }
  }
  tokens_ = std::min(limits_.share * limits_.burst_seconds, tokens_ + passed * limits_.share) -
            static_cast<double>(all) * limits_.entry_seconds;
  if (tokens_ >= 0) return gone;
  // Over budget: detach the hottest functions until the rest fits.
  const double fits = limits_.share / limits_.entry_seconds;
  std::sort(kept.begin(), kept.end(), [](const Recent& a, const Recent& b) { return a.rate > b.rate; });
  for (const auto& [rate, index] : kept) {
    if (staying <= fits || rate * kRecentSeconds < 2) break;
    staying -= rate;
    end_stint(index, now_ns, counts);
    gone.push_back(index);
  }
  tokens_ = std::max(tokens_, -limits_.share * kLongestDebt);
  return gone;
}

std::vector<std::uint32_t> FunctionRates::due(std::int64_t now_ns, std::size_t most) const {
  std::vector<std::uint32_t> found;
  if (tokens_ <= 0) return found;
  for (std::uint32_t i = 0; i < functions_.size(); ++i) {
    const auto& function = functions_[i];
    if (function.attached || function.first_ns == 0 || now_ns - function.since_ns < function.pause_ns ||
        now_ns < function.retry_ns) {
      continue;
    }
    found.push_back(i);
  }
  // Start with the functions about which least is known: they are most likely to be classified wrongly.
  std::sort(found.begin(), found.end(), [this](std::uint32_t a, std::uint32_t b) {
    const auto& x = functions_[a];
    const auto& y = functions_[b];
    return x.pause_ns != y.pause_ns ? x.pause_ns < y.pause_ns : x.last_rate < y.last_rate;
  });
  double spend = 0;
  std::size_t take = 0;
  for (const auto index : found) {
    if (take >= most) break;
    // The cost is at most the sampling time itself, even if a thread does nothing but enter the sampled functions.
    spend = std::min(spend + functions_[index].last_rate * kSampleSeconds * limits_.entry_seconds, kSampleSeconds);
    if (spend + static_cast<double>(take + 1) * limits_.attach_seconds > tokens_) break;
    ++take;
  }
  found.resize(take);
  return found;
}

FunctionRates::Estimate FunctionRates::estimate(std::size_t index, std::size_t node, std::int64_t now_ns,
                                                std::span<const std::uint64_t> counts, double rare_below) const {
  const auto& function = functions_[index];
  const auto& own = per_node_[index * nodes_ + node];
  const auto count = counts[index * nodes_ + node];
  Estimate out;
  if (function.first_ns == 0) {
    out.known = !function.failed;
    return out;
  }
  out.seconds = seconds(now_ns - function.first_ns);
  out.calls = static_cast<double>(count) + own.filled;
  auto watched_ns = function.watched_ns;
  if (function.attached) {
    out.calls += gap_calls(function, own, now_ns, count);
    watched_ns += now_ns - function.since_ns;
  } else {
    out.calls += own.rate_before * seconds(now_ns - function.since_ns);
  }
  out.watched = function.attached && function.watched_ns == 0;
  // With no call in 3/r seconds, the rate is below r with 95 % confidence (rule of three).
  out.enough = out.watched || seconds(watched_ns) * rare_below >= 3;
  out.known = out.enough || !function.failed;
  return out;
}

}  // namespace rose
