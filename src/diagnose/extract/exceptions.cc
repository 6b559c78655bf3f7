#include "diagnose/extract/exceptions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/units.h"
#include "diagnose/words.h"
#include "evidence/forms.h"

namespace rose::diagnose {
namespace {

// at most this many exceptions of all nodes together are kept, the most clearly reported ones
constexpr std::size_t kMostExceptions = 40;
constexpr std::uint64_t kMostVisits = 10'000;  // instead of a higher ordinal, a time is used as the condition
constexpr std::size_t kLongestMessage = 300;   // message of an exception in a schedule, in bytes

// The message without control characters; "" if it is too long.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  if (text.size() > kLongestMessage)
    text.clear();  // a program that compares the message would not accept a truncated message
  return text;
}

Candidate exception_candidate(const Given& given, const Times& times, const ReportedException& reported, int node,
                              Ids& ids) {
  std::vector<Fault> shapes;
  const std::string id = ids.next(
      fmt::format("throw-{}-{}", reported.sites[0].throws.substr(reported.sites[0].throws.find_last_of(".$") + 1),
                  given.name(node)));
  const auto shape = [&](const ThrowSite& site) {
    Fault fault;
    fault.kind = FaultKind::exception;
    fault.node = given.name(node);
    fault.id = id;
    fault.throws = site.throws;
    fault.message = one_line(site.message);
    fault.function = site.function;
    fault.at_line = site.line;
    shapes.push_back(std::move(fault));
  };
  for (const ThrowSite& site : reported.sites) {
    shape(site);
    // The fault-free run gives an estimate of the ordinal of the visit that threw. Earlier visits did not throw,
    // because the log would contain their messages.
    if (&site == &reported.sites[0] && reported.visits > 1 && reported.visits <= kMostVisits) {
      shape(site);
      shapes.back().count = static_cast<int>(reported.visits);
    }
  }
  // Also arm the fault at the observed time, because the first visits of a place that is visited constantly come at the
  // start.
  std::int64_t since = times.workload != 0 ? reported.first_ts - times.workload : 0;
  if (since > given.longest_ns) since = given.longest_ns / 2;
  if (since >= kSecond / 2) {
    shapes.push_back(shapes[0]);
    shapes.back().when = {elapsed(since - since / 5)};
  }
  if (reported.count > 1) {
    shapes.push_back(shapes[0]);
    shapes.back().times = -1;
  }
  Fault first = std::move(shapes.front());
  shapes.erase(shapes.begin());
  Candidate c = candidate_of(std::move(first), reported.count, reported.first_ts);
  c.alternatives = std::move(shapes);
  c.last_ts = reported.last_ts;
  c.ordinariness = 1;
  c.plainness = reported.weight;
  c.known = Known::stated;
  c.why = reported.words;
  return c;
}

}  // namespace

Extracted extract_exceptions(const Given& given, const Times& times) {
  Extracted extracted;
  std::vector<const ReportedException*> all;
  for (const ReportedException& exception : given.inputs.exceptions) all.push_back(&exception);
  std::stable_sort(all.begin(), all.end(),
                   [](const ReportedException* a, const ReportedException* b) { return a->weight > b->weight; });
  if (all.size() > kMostExceptions) {
    extracted.notes.push_back(fmt::format("of {} exceptions in the logs, the {} with the clearest locations are tried",
                                          all.size(), kMostExceptions));
    all.resize(kMostExceptions);
  }
  Ids ids;
  for (const ReportedException* exception : all) {
    const int node = given.nodes.of_address(exception->node);
    if (node < 0 || exception->sites.empty()) continue;
    extracted.candidates.push_back(exception_candidate(given, times, *exception, node, ids));
  }
  return extracted;
}

}  // namespace rose::diagnose
