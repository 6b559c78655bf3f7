// Estimates the offsets between the clocks of several hosts. It uses the handshakes of TCP connections, which the
// tracers on both sides record. Pure.
//
// A SYN reaches the server before the client receives the answer, and the client's ACK reaches the server after that,
// so in true time, syn <= synack <= ack. Therefore the client's clock is ahead of the server's by at least synack - ack
// and at most synack - syn. The intervals of many handshakes are intersected. The estimate takes drift into account,
// and ignores a few handshakes that contradict the others.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::trace {

// A line of Meta::handshakes: what one side recorded, as wall-clock times. A time is 0 if this side did not record it.
struct Handshake {
  std::string_view client, server;      // "10.0.0.1:40000", "[fd00::1]:7000"
  std::uint32_t isn = 0;                // the client's initial sequence number, because ports are reused
  std::int64_t syn_ns = 0, ack_ns = 0;  // when the server received the SYN and the ACK
  std::int64_t synack_ns = 0;           // when the client received the SYN-ACK
};
[[nodiscard]] std::string to_text(const Handshake& handshake);
// Returns nothing if the line has another form, because the dump may come from any source.
[[nodiscard]] std::optional<Handshake> to_handshake(std::string_view line);

// Formats a line of Meta::clock: at `at_ns`, by the new clock, the clock of `host` was changed by `change_ns`.
[[nodiscard]] std::string step_text(std::string_view host, std::int64_t at_ns, std::int64_t change_ns);
// A line of Meta::clock that step_text() formatted. to_step() returns nothing for other lines.
struct ClockStep {
  std::string_view host;
  std::int64_t at_ns = 0, change_ns = 0;
};
[[nodiscard]] std::optional<ClockStep> to_step(std::string_view sentence);

// Bounds for how far one clock is ahead of another one.
struct ClockBound {
  static constexpr std::int64_t kNone = std::int64_t{1} << 62;  // -kNone or kNone: no bound on this side
  std::int64_t at_ns = 0;                                       // time of the measurement, by the other clock
  std::int64_t lo_ns = -kNone, hi_ns = kNone;
};

// The offset as a linear function of time. kMostDrift: quartz clocks that are corrected (for example by NTP) drift
// apart more slowly than this.
inline constexpr double kMostDrift = 100e-6;
class ClockFit {
 public:
  // Returns nothing if there are no bounds, if there are none on one side, or if they contradict each other.
  [[nodiscard]] static std::optional<ClockFit> make(const std::vector<ClockBound>& bounds);

  struct Range {
    double lo = 0, hi = 0;
    [[nodiscard]] double middle() const { return lo + (hi - lo) / 2; }
    [[nodiscard]] double error() const { return (hi - lo) / 2; }
  };
  [[nodiscard]] Range at(std::int64_t ns) const;
  [[nodiscard]] std::size_t used() const { return used_; }  // number of bounds that agree with the result

 private:
  struct Line {  // with this slope, offsets from lo to hi at base_ agree with the greatest number of bounds
    double slope = 0, lo = 0, hi = 0;
  };
  std::int64_t base_ = 0;
  std::size_t used_ = 0;
  std::vector<Line> lines_;
};

// The lines about handshakes in all dumps of one host.
struct HostHandshakes {
  std::vector<Handshake> handshakes;
  std::int64_t begin_ns = 0, end_ns = 0;  // the period of the host's events
};

// How far a host's clock is ahead of the first host's clock: `ahead_begin` at begin_ns, and `ahead_end` at end_ns, both
// by the first host's clock. It is linear between these times and beyond them.
struct HostClock {
  bool known = false;
  std::int64_t begin_ns = 0, end_ns = 0;
  double ahead_begin = 0, ahead_end = 0;
  double error_ns = 0;         // the largest possible error
  std::size_t handshakes = 0;  // on the path to the first host: number of handshakes of the step that has the fewest
  std::size_t steps = 0;       // number of steps on that path

  // Converts a time by this host's clock to the first host's clock.
  [[nodiscard]] std::int64_t to_first(std::int64_t ts_ns) const;
};

// One result for each host. That of the first host is known, and 0.
[[nodiscard]] std::vector<HostClock> estimate_clocks(const std::vector<HostHandshakes>& hosts);

}  // namespace rose::trace
