#include "trace/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/units.h"
#include "trace/limits.h"

namespace rose::trace {
namespace {

constexpr int kSlopes = 100;  // number of slopes that are tried on each side of zero
constexpr std::size_t kMostBounds = 1024;

template <typename T>
bool number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string to_text(const Handshake& h) {
  return fmt::format("{} {} {} {} {} {}", h.client, h.server, h.isn, h.syn_ns, h.synack_ns, h.ack_ns);
}

std::optional<Handshake> to_handshake(std::string_view line) {
  std::array<std::string_view, 6> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto end = line.find(' ');
    if ((end == std::string_view::npos) != (i + 1 == words.size())) return std::nullopt;
    words[i] = line.substr(0, end);
    if (words[i].empty()) return std::nullopt;
    if (end != std::string_view::npos) line.remove_prefix(end + 1);
  }
  Handshake h;
  h.client = words[0];
  h.server = words[1];
  if (!number(words[2], h.isn) || !number(words[3], h.syn_ns) || !number(words[4], h.synack_ns) ||
      !number(words[5], h.ack_ns)) {
    return std::nullopt;
  }
  for (const auto ns : {h.syn_ns, h.synack_ns, h.ack_ns}) {
    if (ns < 0 || ns > kLatestTs) return std::nullopt;
  }
  return h;
}

std::optional<ClockFit> ClockFit::make(const std::vector<ClockBound>& given) {
  std::vector<ClockBound> bounds;
  for (const auto& bound : given) {
    if (bound.lo_ns <= bound.hi_ns) bounds.push_back(bound);
  }
  if (bounds.empty()) return std::nullopt;
  if (bounds.size() > kMostBounds) {  // keep the narrowest bounds, which contain the most information
    std::nth_element(bounds.begin(), bounds.begin() + kMostBounds, bounds.end(), [](const auto& a, const auto& b) {
      return static_cast<double>(a.hi_ns) - static_cast<double>(a.lo_ns) <
             static_cast<double>(b.hi_ns) - static_cast<double>(b.lo_ns);
    });
    bounds.resize(kMostBounds);
  }
  ClockFit fit;
  std::int64_t first = bounds[0].at_ns, last = first;
  for (const auto& bound : bounds) {
    first = std::min(first, bound.at_ns);
    last = std::max(last, bound.at_ns);
  }
  fit.base_ = first + (last - first) / 2;

  // For each slope, find the offset that most intervals contain (Marzullo's algorithm).
  struct Edge {
    double at;
    int step;
  };
  std::vector<Edge> edges(bounds.size() * 2);
  for (int k = -kSlopes; k <= kSlopes; ++k) {
    const double slope = kMostDrift * k / kSlopes;
    edges.clear();
    for (const auto& bound : bounds) {
      const double moved = slope * static_cast<double>(bound.at_ns - fit.base_);
      edges.push_back({static_cast<double>(bound.lo_ns) - moved, 1});
      edges.push_back({static_cast<double>(bound.hi_ns) - moved, -1});
    }
    // Intervals that only touch count as overlapping. Therefore, at the same position, a beginning must come before an
    // end.
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return a.at != b.at ? a.at < b.at : a.step > b.step; });
    int depth = 0;
    std::size_t most = 0;
    Line line{slope, 0, 0};
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      depth += edges[i].step;
      if (static_cast<std::size_t>(std::max(depth, 0)) > most) {
        most = static_cast<std::size_t>(depth);
        line.lo = edges[i].at;
        line.hi = edges[i + 1].at;
      } else if (edges[i].step > 0 && static_cast<std::size_t>(depth) == most) {
        line.hi = edges[i + 1].at;  // another range is equally good, so extend the result to cover it
      }
    }
    if (most > fit.used_) {
      fit.used_ = most;
      fit.lines_.clear();
    }
    if (most == fit.used_) fit.lines_.push_back(line);
  }
  constexpr double kFar = static_cast<double>(ClockBound::kNone) / 2;
  for (const auto& line : fit.lines_) {
    if (line.lo < -kFar || line.hi > kFar) return std::nullopt;
  }
  // If most bounds contradict the estimate, do not use it.
  if (fit.used_ * 2 <= bounds.size()) return std::nullopt;
  return fit;
}

ClockFit::Range ClockFit::at(std::int64_t ns) const {
  const double since = static_cast<double>(ns - base_);
  Range range{std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
  for (const auto& line : lines_) {
    range.lo = std::min(range.lo, line.lo + line.slope * since);
    range.hi = std::max(range.hi, line.hi + line.slope * since);
  }
  return range;
}

std::int64_t HostClock::to_first(std::int64_t ts_ns) const {
  if (!known) return ts_ns;
  const double length = static_cast<double>(end_ns - begin_ns);
  const double slope = length > 0 ? (ahead_end - ahead_begin) / length : 0;
  // Solve ts = t + ahead(t) for ahead(t), where ahead(t) = ahead_begin + slope * (t - begin). Only the difference is
  // computed in floating point, because a double cannot hold today's time in nanoseconds exactly.
  const double since = (static_cast<double>(ts_ns - begin_ns) - ahead_begin) / (1 + slope);
  return ts_ns - std::llround(ahead_begin + slope * since);
}

std::string step_text(std::string_view host, std::int64_t at_ns, std::int64_t change_ns) {
  return fmt::format("{}: the clock was set {} by {} at {}; earlier times are corrected as if it had been right before",
                     host, change_ns < 0 ? "back" : "forward", format_duration(std::abs(change_ns)), wall_clock(at_ns));
}

namespace {

// Parses a text that wall_clock() returned. Returns nothing for any other text.
std::optional<std::int64_t> read_wall_clock(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00 00:00:00.000000000 UTC";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (kForm[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return std::nullopt;
  const auto number = [&](std::size_t from, std::size_t size) {
    int value = 0;
    for (const char c : text.substr(from, size)) value = value * 10 + (c - '0');
    return value;
  };
  std::tm time{};
  time.tm_year = number(0, 4) - 1900;
  time.tm_mon = number(5, 2) - 1;
  time.tm_mday = number(8, 2);
  time.tm_hour = number(11, 2);
  time.tm_min = number(14, 2);
  time.tm_sec = number(17, 2);
  constexpr int kFirst = 1970, kLast = 2261;  // years whose times fit into 64 bits as nanoseconds since 1970
  if (time.tm_year + 1900 < kFirst || time.tm_year + 1900 > kLast) return std::nullopt;
  return static_cast<std::int64_t>(::timegm(&time)) * kSecond + number(20, 9);
}

}  // namespace

std::optional<ClockStep> to_step(std::string_view sentence) {
  constexpr std::string_view kSet = ": the clock was set ", kBy = " by ", kAt = " at ";
  const std::size_t set = sentence.find(kSet);
  if (set == std::string_view::npos) return std::nullopt;
  const std::string_view rest = sentence.substr(set + kSet.size());
  const std::size_t by = rest.find(kBy), at = rest.find(kAt);
  if (by == std::string_view::npos || at == std::string_view::npos || at < by) return std::nullopt;
  const std::string_view way = rest.substr(0, by);
  const Result<std::int64_t> change = parse_duration_ns(rest.substr(by + kBy.size(), at - by - kBy.size()));
  const std::optional<std::int64_t> when =
      read_wall_clock(rest.substr(at + kAt.size()).substr(0, rest.substr(at + kAt.size()).find(';')));
  if (!change || !when || (way != "back" && way != "forward")) return std::nullopt;
  return ClockStep{sentence.substr(0, set), *when, way == "back" ? -*change : *change};
}

std::vector<HostClock> estimate_clocks(const std::vector<HostHandshakes>& hosts) {
  std::vector<HostClock> clocks(hosts.size());
  if (hosts.empty()) return clocks;
  // Match the two sides of each handshake. A line may be in several dumps of one host.
  struct Seen {
    std::size_t host;
    const Handshake* at;
  };
  struct Sides {
    std::vector<Seen> servers, clients;
  };
  std::map<std::tuple<std::string_view, std::string_view, std::uint32_t>, Sides> matched;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (const auto& h : hosts[i].handshakes) {
      auto& sides = matched[{h.client, h.server, h.isn}];
      if (h.synack_ns != 0) sides.clients.push_back({i, &h});
      if (h.syn_ns != 0 || h.ack_ns != 0) sides.servers.push_back({i, &h});
    }
  }
  // The bounds for how far the clock of the second host is ahead of the clock of the first. The key contains both
  // indices.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<ClockBound>> bounds;
  for (const auto& [key, sides] : matched) {
    for (const auto& server : sides.servers) {
      for (const auto& client : sides.clients) {
        if (server.host == client.host) continue;
        const auto &s = *server.at, &c = *client.at;
        ClockBound ahead;  // how far the client's clock is ahead of the server's
        ahead.at_ns = s.syn_ns != 0 ? s.syn_ns : s.ack_ns;
        if (s.syn_ns != 0) ahead.hi_ns = c.synack_ns - s.syn_ns;
        if (s.ack_ns != 0) ahead.lo_ns = c.synack_ns - s.ack_ns;
        bounds[{server.host, client.host}].push_back(ahead);
        bounds[{client.host, server.host}].push_back({c.synack_ns, -ahead.hi_ns, -ahead.lo_ns});
      }
    }
  }
  std::map<std::pair<std::size_t, std::size_t>, ClockFit> fits;
  for (const auto& [pair, list] : bounds) {
    if (auto fit = ClockFit::make(list)) fits.emplace(pair, std::move(*fit));
  }
  // The period of the first host's dump and of its handshakes with other hosts.
  std::int64_t begin = hosts[0].begin_ns, end = std::max(hosts[0].end_ns, hosts[0].begin_ns);
  for (const auto& [pair, list] : bounds) {
    if (pair.first != 0) continue;
    for (const auto& bound : list) {
      if (begin == 0) begin = end = bound.at_ns;
      begin = std::min(begin, bound.at_ns);
      end = std::max(end, bound.at_ns);
    }
  }
  clocks[0].known = true;
  clocks[0].begin_ns = begin;
  clocks[0].end_ns = end;
  // Start at the first host, and repeatedly add the host whose offset is most certain (Dijkstra's algorithm).
  std::vector<bool> done(hosts.size(), false);
  for (;;) {
    std::size_t from = hosts.size();
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (!done[i] && clocks[i].known && (from == hosts.size() || clocks[i].error_ns < clocks[from].error_ns)) from = i;
    }
    if (from == hosts.size()) break;
    done[from] = true;
    const HostClock near = clocks[from];
    for (std::size_t to = 0; to < hosts.size(); ++to) {
      const auto fit = fits.find({from, to});
      if (done[to] || fit == fits.end()) continue;
      HostClock far = near;
      const auto at_begin = fit->second.at(begin + static_cast<std::int64_t>(near.ahead_begin));
      const auto at_end = fit->second.at(end + static_cast<std::int64_t>(near.ahead_end));
      far.ahead_begin += at_begin.middle();
      far.ahead_end += at_end.middle();
      far.error_ns += std::max(at_begin.error(), at_end.error());
      far.handshakes = from == 0 ? fit->second.used() : std::min(near.handshakes, fit->second.used());
      far.steps = near.steps + 1;
      if (!clocks[to].known || far.error_ns < clocks[to].error_ns) clocks[to] = far;
    }
  }
  return clocks;
}

}  // namespace rose::trace
