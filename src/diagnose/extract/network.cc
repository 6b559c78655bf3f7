#include "diagnose/extract/network.h"

#include <iterator>
#include <utility>

#include "diagnose/extract/partition.h"
#include "diagnose/thresholds.h"
#include "evidence/network.h"
#include "evidence/silences.h"
#include "evidence/unreachable.h"

namespace rose::diagnose {
namespace {

std::vector<bool> watched_nodes(const NodeMap& nodes) {
  std::vector<bool> watched;
  // Indexed by the node that owns a network, because silences are attributed to owners.
  for (int i = 0; i < nodes.count(); ++i) watched.push_back(false);
  for (int i = 0; i < nodes.count(); ++i)
    if (nodes.watched(i)) watched[static_cast<std::size_t>(nodes.network_of(i))] = true;
  return watched;
}

}  // namespace

Network extract_network(const Given& given, const Facts& facts, const std::vector<Cause>& causes) {
  const std::vector<bool> watched = watched_nodes(given.nodes);
  const std::size_t networks = given.nodes.network_count();
  SortedSilences silences = sort_silences(given, facts, causes);
  Ids ids;
  std::vector<Candidate> candidates;
  const auto symptoms = [&](std::vector<Silence> found, const std::string& because, bool surely = true) {
    for (const Partition& partition : find_partitions(std::move(found), watched, networks)) {
      Candidate& c = candidates.emplace_back(partition_candidate(given, facts, partition, ids));
      c.symptom = surely;
      c.perhaps_symptom = !surely;
      c.why += because;
    }
  };
  // The record of a connection does not contain its process, so the end of one process of a node may be unrelated to a
  // silence of the node.
  for (auto& [cause, group] : silences.explained)
    symptoms(std::move(group),
             fmt::format("; {} {} it", causes[cause].words, causes[cause].partly ? "may explain" : "explains"),
             !causes[cause].partly);
  symptoms(std::move(silences.idle), "; in runs without faults, these nodes are silent until the end, too");
  symptoms(std::move(silences.with_all_else),
           "; these nodes did nothing else any more either: they may have been idle");

  const auto partitions = [&](std::vector<Silence> found) {
    std::vector<Cause> made;
    for (const Partition& partition : find_partitions(std::move(found), watched, networks)) {
      if (!partition.silent && !is_sufficient(partition)) continue;
      const Candidate& c = candidates.emplace_back(partition_candidate(given, facts, partition, ids));
      if (c.plainness < kLeastReported) continue;  // a guess that is only consistent with the logs explains nothing
      made.push_back({CauseKind::partition, partition.node, partition.all_others ? std::vector<int>{} : partition.peers,
                      partition.start, partition.end,
                      fmt::format("the cut of {} ({})", c.node, facts.times.at(partition.start))});
      made.back().plainness = c.plainness;
    }
    return made;
  };
  // First the partitions with clear evidence. They explain ambiguous errors of calls, so that these do not become
  // partitions of their own.
  const Causes of_processes(causes, given.nodes.networks());
  const std::vector<Contact> between = contacts(given);
  std::vector<Silence> plain = unreachable(given, facts.times, between, of_processes, true);
  std::move(plain.begin(), plain.end(), std::back_inserter(silences.unexplained));
  const Causes with_plain = of_processes.with(partitions(std::move(silences.unexplained)));
  Causes all = with_plain.with(partitions(unreachable(given, facts.times, between, with_plain, false)));
  return {{std::move(candidates), std::move(silences.discards), {}}, std::move(all)};
}

}  // namespace rose::diagnose
