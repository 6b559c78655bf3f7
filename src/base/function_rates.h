// How often functions are entered, measured at a bounded price: which to let go of, which to attach again and
// when, and what their rates are, unwatched times included. Pure: told counts and times, decides. For the
// tracer (observe/function_watch) and for the agent in JVMs, so it needs nothing but the standard library's headers.
//
// A function is let go of as soon as it is hot beyond doubt, and sampled again after growing pauses: what was busy only
// at the start shows itself as rare. All entries together may take a share of one CPU (a token bucket);
// beyond it the hottest of the last second or so go first, whatever is known of them, until what stays fits: a moment
// in which much happens once drives out nothing that is rare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rose {

struct RateLimits {
  double share = 0.10;           // of one CPU, for all entries together
  double burst_seconds = 0.5;    // how much of that share may be used at once
  double entry_seconds = 10e-6;  // what one entry costs
  double attach_seconds =
      0;                // what it costs to attach a function again; with 20 ms of entries it must fit into the burst
  double hot_rate = 4;  // entries a second, while it is watched; 0: only the share counts
  std::uint64_t hot_calls = 8;  // ... and at least so many of them
  double window_seconds = 0;    // hot over so long at most; 0: over all the time it is watched
  double pause_seconds = 0.5;   // before the first sample; each next pause is four times as long
  double longest_pause_seconds = 60;
};

class FunctionRates {
 public:
  // `counts` everywhere: entries since the beginning, [function * nodes + node].
  FunctionRates(std::size_t functions, std::size_t nodes, const RateLimits& limits);

  void attached(std::size_t function, std::int64_t now_ns, std::span<const std::uint64_t> counts);
  // Which functions to let go of now. They count as let go of from here on.
  std::vector<std::uint32_t> let_go(std::int64_t now_ns, std::span<const std::uint64_t> counts);
  // It is no longer attached, or could not be attached again: tried again after a pause, and not known meanwhile.
  void failed(std::size_t function, std::int64_t now_ns, std::span<const std::uint64_t> counts);
  // Which to watch again, at most `most`; what is attached must be told by attached().
  [[nodiscard]] std::vector<std::uint32_t> due(std::int64_t now_ns, std::size_t most) const;

  struct Estimate {
    double calls = 0;     // seen, and what the unwatched times probably held
    double seconds = 0;   // since it was first attached
    bool watched = true;  // without a gap: `calls` is exact
    bool enough = true;   // it was watched for long enough to be called rare
    bool known = true;    // false: it could not be watched for a while, and not for long enough otherwise
  };
  // `rare_below`: calls a second that the answer is to be compared with.
  [[nodiscard]] Estimate estimate(std::size_t function, std::size_t node, std::int64_t now_ns,
                                  std::span<const std::uint64_t> counts, double rare_below) const;
  [[nodiscard]] bool is_attached(std::size_t function) const { return functions_[function].attached; }
  [[nodiscard]] double last_rate(std::size_t function) const { return functions_[function].last_rate; }
  [[nodiscard]] std::int64_t pause_ns(std::size_t function) const { return functions_[function].pause_ns; }

 private:
  struct Function {
    bool attached = false;
    std::int64_t first_ns = 0;  // 0: never attached
    std::int64_t since_ns = 0;  // attached or let go of since
    std::int64_t gap_ns = 0;    // unwatched before that
    std::int64_t pause_ns = 0;
    std::int64_t retry_ns = 0;    // not attached again before
    bool failed = false;          // to be attached, once
    std::int64_t watched_ns = 0;  // in earlier stints
    std::uint64_t begin = 0;      // entries when this stint began, all nodes
    std::uint64_t last = 0;       // ... at the last look
    std::int64_t window_ns = 0;   // when the time over which it may prove hot began
    std::uint64_t window = 0;     // entries then
    double last_rate = 0;         // of the last stint that ended
    double recent_rate = 0;       // of this one, what is longer ago counting less and less
  };
  struct PerNode {
    std::uint64_t begin = 0;  // entries when the stint began
    double rate_before = 0;   // of the stint before the gap
    double filled = 0;        // what earlier gaps probably held
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
  double tokens_ = 0;  // seconds of entries that may still be spent
};

}  // namespace rose
