#include "diagnose/extract/extracted.h"

#include <algorithm>
#include <utility>

#include "diagnose/words.h"

namespace rose::diagnose {

std::string Ids::next(std::string base) {
  if (base.size() > 56) base.resize(56);
  int& n = used_[base];
  std::string id;
  do {
    ++n;
    id = n == 1 ? base : fmt::format("{}-{}", base, n);
  } while (!given_.insert(id).second);  // the second fault of node "n1" must not get the id of a fault of a node "n1-2"
  return id;
}

Candidate candidate_of(schedule::Fault fault, std::uint64_t count, std::int64_t ts) {
  Candidate candidate;
  candidate.kind = fault.kind;
  candidate.node = fault.node;
  candidate.count = count;
  candidate.first_ts = ts;
  candidate.last_ts = ts;
  candidate.fault = std::move(fault);
  return candidate;
}

void add_unended_duration(Candidate& candidate, const Times& times, std::int64_t longest_ns) {
  Fault& other = candidate.other_length.emplace(candidate.fault);
  other.duration_ns = longest_ns;
  if (times.workload == 0) return;
  std::swap(candidate.fault, other);
  for (Fault& shape : candidate.alternatives) shape.duration_ns = longest_ns;
}

void set_origin(Candidate& candidate, const Origin& origin) {
  if (origin.known == Known::seen) return;
  candidate.plainness = origin.reliability;
  candidate.why = origin.words;
  candidate.since_ts = origin.since_ns;
  candidate.known = origin.known;
  candidate.assumed = origin.assumed;
}

}  // namespace rose::diagnose
