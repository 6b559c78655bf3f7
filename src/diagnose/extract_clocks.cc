// Clocks that were wrong in production: what the handshakes in the dumps of several hosts say of each other.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"
#include "diagnose/extractor.h"
#include "trace/clock.h"

namespace rose::diagnose {
namespace {

constexpr double kWrongClock = static_cast<double>(kSecond);  // what keeps clocks in time keeps them far closer than this

struct DumpsOfHost {
  std::vector<std::size_t> traces;
  trace::HostHandshakes seen;
};

std::vector<DumpsOfHost> hosts_of_dumps(const std::vector<trace::Trace>& traces) {
  std::map<std::string, DumpsOfHost> by_name;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const trace::Meta& meta = traces[i].meta;
    DumpsOfHost& host = by_name[fmt::format("{}\n{}", meta.boot_id, meta.host.empty() ? meta.node : meta.host)];
    host.traces.push_back(i);
    for (const std::string& line : meta.handshakes)
      if (const std::optional<trace::Handshake> handshake = trace::to_handshake(line)) host.seen.handshakes.push_back(*handshake);
    if (traces[i].events.empty()) continue;
    const std::int64_t first = traces[i].events.front().ts_ns;
    host.seen.begin_ns = host.seen.begin_ns == 0 ? first : std::min(host.seen.begin_ns, first);
    host.seen.end_ns = std::max(host.seen.end_ns, traces[i].events.back().ts_ns);
  }
  std::vector<DumpsOfHost> hosts;
  for (auto& [name, host] : by_name) hosts.push_back(std::move(host));
  return hosts;
}

}  // namespace

void Extractor::clocks() {
  clock_offsets();
  clock_steps();
}

// What the tracers of hosts saw happen to their clocks, and what logs tell of theirs.
void Extractor::clock_steps() {
  struct Of {
    std::vector<int> nodes;
    ToldClockStep step;
  };
  std::vector<Of> all;
  for (const ToldClockStep& told : inputs_.clock_steps)
    if (const int node = nodes_.of_address(told.node); node >= 0) all.push_back({{node}, told});
  for (std::size_t t = 0; t < inputs_.traces.size(); ++t) {
    const trace::Trace& trace = inputs_.traces[t];
    std::map<std::string, Of> last_of;  // by host: one that may be set right again
    for (const std::string& sentence : trace.meta.clock) {
      const std::optional<trace::ClockStep> step = trace::to_step(sentence);
      if (!step || static_cast<double>(std::abs(step->change_ns)) < kWrongClock) continue;
      const std::string host(step->host);
      const auto before = last_of.find(host);
      if (before != last_of.end() && std::abs(before->second.step.change_ns + step->change_ns) < std::abs(step->change_ns) / 10) {
        before->second.step.duration_ns = std::max(kTimeStep, step->at_ns - before->second.step.at_ns);
        all.push_back(std::move(before->second));
        last_of.erase(before);
        continue;
      }
      Of one;
      if (host == (trace.meta.host.empty() ? trace.meta.node : trace.meta.host)) {
        for (const std::string& name : trace::node_names(trace))
          if (const int node = nodes_.of_address(name); node >= 0) one.nodes.push_back(node);
      } else if (const int node = nodes_.of_address(host); node >= 0) {
        one.nodes.push_back(node);
      }
      if (one.nodes.empty()) note(fmt::format("{}, but which node is meant is not known", sentence.substr(0, sentence.find(';'))));
      one.step = {{}, step->at_ns, 0, step->change_ns, 1, sentence.substr(0, sentence.find(';'))};
      if (before != last_of.end()) all.push_back(std::exchange(before->second, std::move(one)));
      else last_of.emplace(host, std::move(one));
    }
    for (auto& [host, one] : last_of) all.push_back(std::move(one));
  }
  for (const Of& one : all)
    for (const int node : one.nodes) add_clock_step(node, one.step);
}

void Extractor::add_clock_step(int node, const ToldClockStep& step) {
  const std::int64_t size = rounded(std::abs(step.change_ns));
  for (Candidate& known : plan_.candidates) {  // a dump and a log may tell of the same
    if (!known.stepped || known.node != name(node) || std::abs(known.fault.clock.shift_ns - step.change_ns) >= size / 10 ||
        std::abs(known.first_ts - step.at_ns) > 60 * kSecond)
      continue;
    known.said = std::max(known.said, step.weight);
    ++known.count;
    return;
  }
  Fault fault;
  fault.kind = FaultKind::clock;
  fault.node = name(node);
  fault.id = unique_id("clock-" + name(node));
  fault.clock.shift_ns = step.change_ns < 0 ? -size : size;
  fault.duration_ns = step.duration_ns > 0 ? rounded(step.duration_ns) : 0;
  Candidate& c = add(FaultKind::clock, node, std::move(fault), 1, step.at_ns);
  c.last_ts = step.at_ns + step.duration_ns;
  c.stepped = true;
  c.said = step.weight;
  c.why = step.words;
}

void Extractor::clock_offsets() {
  const std::vector<DumpsOfHost> hosts = hosts_of_dumps(inputs_.traces);
  if (hosts.size() < 2) return;
  std::vector<trace::HostHandshakes> seen;
  for (const DumpsOfHost& host : hosts) seen.push_back(host.seen);
  const std::vector<trace::HostClock> clocks = trace::estimate_clocks(seen);
  // Most clocks are right: against the one in the middle. Of two hosts nobody knows whose is.
  std::vector<double> ahead;
  for (const trace::HostClock& clock : clocks)
    if (clock.known) ahead.push_back((clock.ahead_begin + clock.ahead_end) / 2);
  if (ahead.size() < 2) return;
  const bool two = ahead.size() == 2;
  std::nth_element(ahead.begin(), ahead.begin() + static_cast<std::ptrdiff_t>((ahead.size() - 1) / 2), ahead.end());
  const double middle = ahead[(ahead.size() - 1) / 2];
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (!clocks[h].known) continue;
    const double off = (clocks[h].ahead_begin + clocks[h].ahead_end) / 2 - middle;
    if (std::abs(off) < kWrongClock + clocks[h].error_ns) continue;
    std::set<int> nodes;
    for (const std::size_t trace : hosts[h].traces) nodes.insert(nodes_.of(trace, Event{}));
    if (nodes.size() == 1 && *nodes.begin() >= 0)
      add_wrong_clock(*nodes.begin(), static_cast<std::int64_t>(off), two);
    else
      note(fmt::format("the clock of the host '{}' is {} {} the others', but which node is meant is not known",
                       inputs_.traces[hosts[h].traces[0]].meta.host, format_duration(rounded(static_cast<std::int64_t>(std::abs(off)))),
                       off > 0 ? "ahead of" : "behind"));
  }
}

void Extractor::add_wrong_clock(int node, std::int64_t off_ns, bool or_all_others) {
  Fault fault;
  fault.kind = FaultKind::clock;
  fault.node = name(node);
  fault.id = unique_id("clock-" + name(node));
  fault.clock.shift_ns = off_ns < 0 ? -rounded(-off_ns) : rounded(off_ns);
  Candidate& c = add(FaultKind::clock, node, std::move(fault), 1, plan_.begin_ts);
  c.last_ts = plan_.end_ts;
  c.why = fmt::format("its clock was {} {} {}, as the handshakes of their connections say", format_duration(std::abs(c.fault.clock.shift_ns)),
                      off_ns > 0 ? "ahead of" : "behind", or_all_others ? "the other host's" : "the others'");
  if (!or_all_others) return;
  for (int other = 0; other < nodes_.count(); ++other) {
    if (other == node || !nodes_.watched(other)) continue;
    Fault back = c.fault;
    back.node = name(other);
    back.id = unique_id("clock-" + name(other));
    back.clock.shift_ns = -back.clock.shift_ns;
    c.alternatives.push_back(std::move(back));
  }
}

}  // namespace rose::diagnose
