#include "diagnose/extract/clocks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "diagnose/words.h"
#include "evidence/forms.h"
#include "trace/clock.h"
#include "weights/weights.h"

namespace rose::diagnose {
namespace {

// The dumps of one host, which have one clock, and their handshakes.
struct DumpsOfHost {
  std::vector<std::size_t> sources;
  trace::HostHandshakes seen;
};

std::vector<DumpsOfHost> hosts_of_dumps(const std::vector<Source>& sources) {
  std::map<std::string, DumpsOfHost> by_name;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const trace::Meta& meta = sources[i].meta;
    DumpsOfHost& host = by_name[fmt::format("{}\n{}", meta.boot_id, meta.host.empty() ? meta.node : meta.host)];
    host.sources.push_back(i);
    for (const std::string& line : meta.handshakes)
      if (const std::optional<trace::Handshake> handshake = trace::to_handshake(line))
        host.seen.handshakes.push_back(*handshake);
    if (sources[i].observations.empty()) continue;
    const std::int64_t first = sources[i].observations.front().ts_ns;
    host.seen.begin_ns = host.seen.begin_ns == 0 ? first : std::min(host.seen.begin_ns, first);
    host.seen.end_ns = std::max(host.seen.end_ns, sources[i].observations.back().ts_ns);
  }
  std::vector<DumpsOfHost> hosts;
  for (auto& [name, host] : by_name) hosts.push_back(std::move(host));
  return hosts;
}

// The candidate for a clock that was ahead by `off_ns` all the time. `or_all_others`: only two hosts are known, so it
// is unknown which of their clocks is wrong. The alternatives therefore shift the clocks of the other nodes in the
// opposite direction.
Candidate wrong_clock(const Given& given, const Times& times, int node, std::int64_t off_ns, bool or_all_others,
                      Ids& ids) {
  Fault fault;
  fault.kind = FaultKind::clock;
  fault.node = given.name(node);
  fault.id = ids.next("clock-" + fault.node);
  fault.clock.shift_ns = off_ns < 0 ? -rounded(-off_ns) : rounded(off_ns);
  Candidate c = candidate_of(std::move(fault), 1, times.begin);
  c.last_ts = times.end;
  c.why = fmt::format("its clock was {} {} {}, according to the handshakes of their connections",
                      format_duration(std::abs(c.fault.clock.shift_ns)), off_ns > 0 ? "ahead of" : "behind",
                      or_all_others ? "the other host's" : "the others'");
  for (int other = 0; or_all_others && other < given.nodes.count(); ++other) {
    if (other == node || !given.nodes.watched(other)) continue;
    Fault back = c.fault;
    back.node = given.name(other);
    back.id = ids.next("clock-" + back.node);
    back.clock.shift_ns = -back.clock.shift_ns;
    c.alternatives.push_back(std::move(back));
  }
  return c;
}

Extracted wrong_clocks(const Given& given, const Times& times, Ids& ids) {
  Extracted extracted;
  const std::vector<DumpsOfHost> hosts = hosts_of_dumps(given.inputs.sources);
  if (hosts.size() < 2) return extracted;
  std::vector<trace::HostHandshakes> seen;
  for (const DumpsOfHost& host : hosts) seen.push_back(host.seen);
  const std::vector<trace::HostClock> clocks = trace::estimate_clocks(seen);
  // Compare with the median, assuming that most clocks are right.
  std::vector<double> ahead;
  for (const trace::HostClock& clock : clocks)
    if (clock.known) ahead.push_back((clock.ahead_begin + clock.ahead_end) / 2);
  if (ahead.size() < 2) return extracted;
  const bool two = ahead.size() == 2;
  std::nth_element(ahead.begin(), ahead.begin() + static_cast<std::ptrdiff_t>((ahead.size() - 1) / 2), ahead.end());
  const double middle = ahead[(ahead.size() - 1) / 2];
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (!clocks[h].known) continue;
    const double off = (clocks[h].ahead_begin + clocks[h].ahead_end) / 2 - middle;
    if (std::abs(off) < kWrongClock + clocks[h].error_ns) continue;
    std::set<int> nodes;
    for (const std::size_t source : hosts[h].sources) nodes.insert(given.nodes.of(source, Event{}));
    if (nodes.size() == 1 && *nodes.begin() >= 0)
      extracted.candidates.push_back(
          wrong_clock(given, times, *nodes.begin(), static_cast<std::int64_t>(off), two, ids));
    else
      extracted.notes.push_back(fmt::format("the clock of the host '{}' is {} {} the others', but its node is unknown",
                                            given.inputs.sources[hosts[h].sources[0]].meta.host,
                                            format_duration(rounded(static_cast<std::int64_t>(std::abs(off)))),
                                            off > 0 ? "ahead of" : "behind"));
  }
  return extracted;
}

// A clock step, and the nodes of its host.
struct StepOf {
  std::vector<int> nodes;
  ReportedClockStep step;
};

// Clock steps that the tracer of one dump recorded.
std::vector<StepOf> seen_steps(const Given& given, const Source& source, std::vector<std::string>& notes) {
  std::vector<StepOf> all;
  std::map<std::string, StepOf> last_of;  // by host: the last step, which a later one may undo
  for (const std::string& sentence : source.meta.clock) {
    const std::optional<trace::ClockStep> step = trace::to_step(sentence);
    if (!step || static_cast<double>(std::abs(step->change_ns)) < kWrongClock) continue;
    const std::string host(step->host);
    const auto before = last_of.find(host);
    if (before != last_of.end() &&
        std::abs(before->second.step.change_ns + step->change_ns) < std::abs(step->change_ns) / 10) {
      before->second.step.duration_ns = std::max(kTimeStep, step->at_ns - before->second.step.at_ns);
      all.push_back(std::move(before->second));
      last_of.erase(before);
      continue;
    }
    StepOf each_step;
    if (host == (source.meta.host.empty() ? source.meta.node : source.meta.host)) {
      for (const std::string& name : evidence::node_names(source))
        if (const int node = given.nodes.of_address(name); node >= 0) each_step.nodes.push_back(node);
    } else if (const int node = given.nodes.of_address(host); node >= 0) {
      each_step.nodes.push_back(node);
    }
    if (each_step.nodes.empty())
      notes.push_back(fmt::format("{}, but its node is unknown", sentence.substr(0, sentence.find(';'))));
    each_step.step = {{}, step->at_ns, 0, step->change_ns, 1, sentence.substr(0, sentence.find(';')), false, false};
    if (before != last_of.end()) all.push_back(std::exchange(before->second, std::move(each_step)));
    else last_of.emplace(host, std::move(each_step));
  }
  for (auto& [host, one] : last_of) all.push_back(std::move(one));
  return all;
}

Candidate set_clock(const std::string& node, const ReportedClockStep& step, Ids& ids) {
  const std::int64_t size = rounded(std::abs(step.change_ns));
  Fault fault;
  fault.kind = FaultKind::clock;
  fault.node = node;
  fault.id = ids.next("clock-" + node);
  fault.clock.shift_ns = step.change_ns < 0 ? -size : size;
  fault.duration_ns = step.duration_ns > 0 ? rounded(step.duration_ns) : 0;
  Candidate c = candidate_of(std::move(fault), 1, step.at_ns);
  c.last_ts = step.at_ns + step.duration_ns;
  c.stepped = !step.all_along;
  c.complained = step.all_along;
  c.plainness = step.weight;
  c.known = step.known;
  c.why = step.words;
  if (step.either_way) {
    Fault& back = c.alternatives.emplace_back(c.fault);
    back.clock.shift_ns = -back.clock.shift_ns;
  }
  return c;
}

// True if the candidate describes the same step: a dump and a log may both report it.
bool describes(const Candidate& known, const std::string& node, const ReportedClockStep& step) {
  const bool either_way = step.either_way || !known.alternatives.empty();
  const std::int64_t known_ns = known.fault.clock.shift_ns,
                     apart = either_way ? std::abs(known_ns) - std::abs(step.change_ns) : known_ns - step.change_ns;
  const bool same_time = step.all_along ? known.complained : std::abs(known.first_ts - step.at_ns) <= 60 * kSecond;
  return known.node == node && same_time && std::abs(apart) < rounded(std::abs(step.change_ns)) / 10;
}

// Clock steps that logs report, and those that tracers recorded.
Extracted set_clocks(const Given& given, Ids& ids) {
  Extracted extracted;
  std::vector<StepOf> all;
  for (const ReportedClockStep& reported : given.inputs.clock_steps)
    if (const int node = given.nodes.of_address(reported.node); node >= 0) all.push_back({{node}, reported});
  for (const evidence::Source& source : given.inputs.sources) {
    std::vector<StepOf> seen = seen_steps(given, source, extracted.notes);
    std::move(seen.begin(), seen.end(), std::back_inserter(all));
  }
  for (const auto& [nodes, step] : all)
    for (const int node : nodes) {
      const std::string& name = given.name(node);
      const auto known = std::find_if(extracted.candidates.begin(), extracted.candidates.end(),
                                      [&, &step = step](const Candidate& c) { return describes(c, name, step); });
      if (known == extracted.candidates.end()) {
        extracted.candidates.push_back(set_clock(name, step, ids));
      } else {
        known->plainness = std::max(known->plainness, step.weight);
        known->known = std::min(known->known, step.known);
        ++known->count;
      }
    }
  return extracted;
}

}  // namespace

Extracted extract_clocks(const Given& given, const Times& times) {
  Ids ids;
  Extracted extracted = wrong_clocks(given, times, ids);
  Extracted set = set_clocks(given, ids);
  std::move(set.candidates.begin(), set.candidates.end(), std::back_inserter(extracted.candidates));
  std::move(set.notes.begin(), set.notes.end(), std::back_inserter(extracted.notes));
  return extracted;
}

}  // namespace rose::diagnose
