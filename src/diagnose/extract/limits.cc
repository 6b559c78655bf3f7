#include "diagnose/extract/limits.h"

#include <algorithm>

#include "base/units.h"
#include "diagnose/words.h"
#include "evidence/forms.h"

namespace rose::diagnose {
namespace {

// Number of disk requests that a waiting call makes (data, journal, barrier). The observed duration of the call is
// divided by this number, and each request is delayed by the result.
constexpr std::int64_t kRequestsOfCall = 3;
constexpr std::int64_t kLeastDelay = 10'000'000, kMostDelay = 10 * kSecond;
// The limit of descriptors. A running process has more descriptors open than this, so it gets no further ones, but can
// continue for a while.
constexpr std::int64_t kFewLeft = 16;

Candidate limited(const Given& given, const ReportedLimit& reported, Ids& ids) {
  Fault fault;
  fault.kind = reported.kind;
  fault.node = reported.node;
  fault.id = ids.next(fmt::format("{}-{}", schedule::kind_name(reported.kind), reported.node));
  if (reported.kind == FaultKind::descriptors) fault.resource.limit = kFewLeft;
  if (reported.kind == FaultKind::disk_slow) {
    fault.resource.delay_ns = std::clamp(rounded(reported.took_ns / kRequestsOfCall), kLeastDelay, kMostDelay);
    fault.duration_ns = std::clamp(rounded(reported.took_ns), kSecond, std::max(kSecond, given.longest_ns / 2));
  }
  Candidate c = candidate_of(std::move(fault), reported.count, reported.at_ns);
  c.last_ts = reported.at_ns + reported.took_ns;
  c.plainness = reported.weight;
  c.known = reported.inferred ? Known::inferred : Known::stated;
  c.why = reported.words;
  return c;
}

}  // namespace

Extracted extract_limits(const Given& given) {
  Ids ids;
  Extracted extracted;
  for (const ReportedLimit& reported : given.inputs.reported_limits)
    if (given.nodes.of_address(reported.node) >= 0) extracted.candidates.push_back(limited(given, reported, ids));
  return extracted;
}

}  // namespace rose::diagnose
