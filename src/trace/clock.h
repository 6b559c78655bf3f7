// How the clocks of several hosts stand to each other, told from TCP handshakes that the tracers of both sides saw
// arrive. Pure.
//
// A SYN reaches the server before the client gets its answer, and the client's ACK reaches the server after that. In
// true time syn <= synack <= ack, so the client's clock is between synack - ack and synack - syn ahead of the server's.
// Intervals of many handshakes are intersected; clocks may drift, and a few contradicting handshakes are outvoted.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::trace {

// A line of Meta::handshakes: what one side saw arrive. Wall clock; 0: not seen on this side.
struct Handshake {
  std::string_view client, server;      // "10.0.0.1:40000", "[fd00::1]:7000"
  std::uint32_t isn = 0;                // the client's initial sequence number: ports come again
  std::int64_t syn_ns = 0, ack_ns = 0;  // at the server
  std::int64_t synack_ns = 0;           // at the client
};
[[nodiscard]] std::string to_text(const Handshake& handshake);
// Nothing when it is no such line: dumps come from anywhere.
[[nodiscard]] std::optional<Handshake> to_handshake(std::string_view line);

// A sentence of Meta::clock: the clock of `host` was set at `at_ns` (as it is since) by `change_ns`.
[[nodiscard]] std::string step_text(std::string_view host, std::int64_t at_ns, std::int64_t change_ns);
// What such a sentence says; nothing when it says something else.
struct ClockStep {
  std::string_view host;
  std::int64_t at_ns = 0, change_ns = 0;
};
[[nodiscard]] std::optional<ClockStep> to_step(std::string_view sentence);

// How far a clock is ahead of another, between these bounds.
struct ClockBound {
  static constexpr std::int64_t kNone = std::int64_t{1} << 62;  // no bound on this side: -kNone, kNone
  std::int64_t at_ns = 0;                                       // when, on the other clock
  std::int64_t lo_ns = -kNone, hi_ns = kNone;
};

// How far it is ahead as a function of time. Quartz and its corrections drift apart by less than this.
inline constexpr double kMostDrift = 100e-6;
class ClockFit {
 public:
  // Nothing when there are no bounds, none on one of the sides, or when they contradict each other.
  [[nodiscard]] static std::optional<ClockFit> make(const std::vector<ClockBound>& bounds);

  struct Range {
    double lo = 0, hi = 0;
    [[nodiscard]] double middle() const { return lo + (hi - lo) / 2; }
    [[nodiscard]] double error() const { return (hi - lo) / 2; }
  };
  [[nodiscard]] Range at(std::int64_t ns) const;
  [[nodiscard]] std::size_t used() const { return used_; }  // bounds that agree

 private:
  struct Line {  // all offsets between lo and hi at base_, with this slope, agree
    double slope = 0, lo = 0, hi = 0;
  };
  std::int64_t base_ = 0;
  std::size_t used_ = 0;
  std::vector<Line> lines_;
};

// What one host saw: all lines of its dumps.
struct HostHandshakes {
  std::vector<Handshake> handshakes;
  std::int64_t begin_ns = 0, end_ns = 0;  // its events lie between
};

// A host's clock against the first host's: ahead by `begin` at begin_ns and by `end` at end_ns of the first's clock, in
// a line between and beyond.
struct HostClock {
  bool known = false;
  std::int64_t begin_ns = 0, end_ns = 0;
  double ahead_begin = 0, ahead_end = 0;
  double error_ns = 0;         // it is within this
  std::size_t handshakes = 0;  // on the way to the first host: the fewest of a step
  std::size_t steps = 0;       // hosts between, plus one

  // A time of this host's clock on the first's.
  [[nodiscard]] std::int64_t to_first(std::int64_t ts_ns) const;
};

// One for each host; the first's own is known and 0.
[[nodiscard]] std::vector<HostClock> estimate_clocks(const std::vector<HostHandshakes>& hosts);

}  // namespace rose::trace
