// Estimates how often functions are entered, at a bounded cost. Decides which functions to detach, which to attach
// again and when, and estimates rates that include the time during which a function was not watched. Pure: it receives
// counts and times and returns decisions. The tracer (observe/function_watch) and the agent in JVMs use it, so it needs
// only headers of the standard library.
//
// A function is detached as soon as it is certainly hot, and then sampled after growing pauses, so that a function that
// was busy only during startup is recognised as rare. Entries may cost a share of one CPU in total (a token bucket).
// Above that share, the functions that were hottest in the last second are detached first, until the rest fits. The
// choice does not depend on older history, so a short burst of one function never displaces rare ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rose {

struct RateLimits {
  double share = 0.10;           // of one CPU, for all entries together
  double burst_seconds = 0.5;    // a burst may use at once what the share allows in this time
  double entry_seconds = 10e-6;  // cost of one entry
  // cost of attaching a function again; share * burst_seconds must be at least this cost plus 20 ms for sampled entries
  double attach_seconds = 0;
  double hot_rate = 4;  // entries per second while watched, above which a function is hot; 0: only the share counts
  std::uint64_t hot_calls = 8;  // minimum number of entries before a function is called hot
  double window_seconds = 0;    // longest time over which the rate is measured; 0: the whole time it is watched
  double pause_seconds = 0.5;   // before the first sample; each later pause is four times as long as the one before it
  double longest_pause_seconds = 60;
};

class FunctionRates {
 public:
  // `counts` in all methods: entries since the beginning, indexed by [function * nodes + node].
  FunctionRates(std::size_t functions, std::size_t nodes, const RateLimits& limits);

  void attached(std::size_t function, std::int64_t now_ns, std::span<const std::uint64_t> counts);
  // The functions to detach now. They are considered detached from this call on.
  std::vector<std::uint32_t> to_detach(std::int64_t now_ns, std::span<const std::uint64_t> counts);
  // Reports that a function is no longer attached or could not be attached again. Attaching is tried again after a
  // pause; until then, the function's rate is unknown.
  void failed(std::size_t function, std::int64_t now_ns, std::span<const std::uint64_t> counts);
  // At most `most` functions that should be attached again. Report success through attached().
  [[nodiscard]] std::vector<std::uint32_t> due(std::int64_t now_ns, std::size_t most) const;

  struct Estimate {
    double calls = 0;     // observed, plus an estimate for the time it was not watched
    double seconds = 0;   // since it was first attached
    bool watched = true;  // never detached, so `calls` is exact
    bool enough = true;   // it was watched for long enough to conclude that it is rare
    bool known = true;    // false: it could not be attached for a while and was not watched long enough otherwise
  };
  // `rare_below`: the rate, in calls per second, that the caller will compare the answer with.
  [[nodiscard]] Estimate estimate(std::size_t function, std::size_t node, std::int64_t now_ns,
                                  std::span<const std::uint64_t> counts, double rare_below) const;
  [[nodiscard]] bool is_attached(std::size_t function) const { return functions_[function].attached; }
  [[nodiscard]] double last_rate(std::size_t function) const { return functions_[function].last_rate; }
  [[nodiscard]] std::int64_t pause_ns(std::size_t function) const { return functions_[function].pause_ns; }

 private:
  struct Function {
    bool attached = false;
    std::int64_t first_ns = 0;  // 0: never attached
    std::int64_t since_ns = 0;  // time of the last attach or detach
    std::int64_t gap_ns = 0;    // time for which it was not watched before `since_ns`
    std::int64_t pause_ns = 0;
    std::int64_t retry_ns = 0;    // do not attach again before this time
    bool failed = false;          // attaching failed; try it once more
    std::int64_t watched_ns = 0;  // time for which it was watched in earlier periods
    std::uint64_t begin = 0;      // entries when this period began, all nodes
    std::uint64_t last = 0;       // entries at the previous check
    std::int64_t window_ns = 0;   // start of the window in which the function's rate is measured
    std::uint64_t window = 0;     // entries at that time
    double last_rate = 0;         // rate in the last completed period
    double recent_rate = 0;       // rate in this period, with older entries weighted less
  };
  struct PerNode {
    std::uint64_t begin = 0;  // entries when the period began
    double rate_before = 0;   // rate in the period before the gap
    double filled = 0;        // estimated calls in earlier gaps
  };
  [[nodiscard]] std::uint64_t total(std::size_t function, std::span<const std::uint64_t> counts) const;
  [[nodiscard]] double gap_calls(const Function& function, const PerNode& node, std::int64_t now_ns,
                                 std::uint64_t count) const;
  void end_stint(std::size_t function, std::int64_t now_ns, std::span<const std::uint64_t> counts);

  std::size_t nodes_;
  RateLimits limits_;
  std::vector<Function> functions_;
  std::vector<PerNode> per_node_;
  std::int64_t looked_ns_ = 0;
  double tokens_ = 0;  // seconds of entry cost that may still be spent
};

}  // namespace rose
