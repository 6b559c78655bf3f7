#include "evidence/network.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/units.h"
#include "weights/weights.h"

namespace rose::evidence {

using namespace weights;

namespace {

constexpr std::size_t kMostConnections = 16;  // at most this many connections of one pair are compared with each other

// Silences that are attributed to one event. A silence begins at the last packet before the partition, so the starts of
// silences of one partition differ by up to one heartbeat.
struct Cluster {
  std::int64_t start = 0;
  std::int64_t end = 0;
  // The intersection of the intervals in which the causes of the silences began. The partition began in this interval.
  std::int64_t begins = 0;
  std::int64_t begins_by = INT64_MAX;
  std::vector<Silence> silences;
  std::vector<Silence> echoes;  // later, shorter silences of its pairs: gaps between retransmissions
};

// Tolerance between timestamps of two hosts, and for counters that the tracer reads a few times per second.
constexpr std::int64_t kJitter = kSecond / 2;

void note_begin(Cluster& cluster, const Silence& silence) {
  if (silence.begin_within < 0) return;
  cluster.begins = std::max(cluster.begins, silence.start);
  cluster.begins_by = std::min(cluster.begins_by, silence.start + silence.begin_within);
}

std::pair<int, int> edge_of(const Silence& silence) { return std::minmax(silence.src, silence.dst); }

bool begins_with(const Cluster& cluster, const Silence& silence) {
  if (silence.start - cluster.start <= kSilentTogether) return true;
  // On a rarely used connection, the last packet may precede the partition by far more than on a busy connection. Then
  // the interval in which the cause of the silence began has to overlap the interval of the cluster.
  const std::int64_t by = silence.begin_within < 0 ? INT64_MAX : silence.start + silence.begin_within;
  return cluster.begins_by != INT64_MAX && silence.start <= cluster.begins_by + kJitter &&
         by >= cluster.begins - kJitter;
}

// True if the silence begins with the cluster, and the two overlap for at least half of the shorter one.
bool belongs(const Cluster& cluster, const Silence& silence) {
  if (!begins_with(cluster, silence)) return false;
  const auto overlap = static_cast<double>(std::min(cluster.end, silence.end) - silence.start);
  const auto shorter = static_cast<double>(std::min(cluster.end - cluster.start, silence.end - silence.start));
  return overlap * 2 >= shorter;
}

// True if the silence lies within the time of the cluster and concerns one of its pairs.
bool echoes(const Cluster& cluster, const Silence& silence) {
  if (silence.start < cluster.start || silence.end > cluster.end + 2 * kSecond) return false;
  return std::any_of(cluster.silences.begin(), cluster.silences.end(),
                     [&](const Silence& other) { return edge_of(other) == edge_of(silence); });
}

// Corrects the start of silences on connections that were rarely used: their last packet may precede the partition by a
// long time. If the silence of a busier connection between the same nodes ended at the same time, the partition began
// when the busier connection fell silent.
std::vector<Silence> since_busy(std::vector<Silence> silences) {
  std::map<std::tuple<int, int, std::uint16_t>, std::vector<Silence*>> of;
  for (Silence& silence : silences)
    if (silence.failed_at < 0 && silence.src >= 0) of[{silence.src, silence.dst, silence.port}].push_back(&silence);
  for (auto& [pair, each] : of) {
    std::stable_sort(each.begin(), each.end(), [](const Silence* a, const Silence* b) { return a->end < b->end; });
    for (std::size_t i = 0; i < each.size(); ++i)
      for (std::size_t j = i + 1;
           j < std::min(each.size(), i + kMostConnections) && each[j]->end - each[i]->end <= kSilentTogether; ++j) {
        Silence& idle = each[i]->packets < each[j]->packets ? *each[i] : *each[j];
        const Silence& busy = &idle == each[i] ? *each[j] : *each[i];
        if (busy.packets >= kBusierPeer * std::max<std::uint64_t>(idle.packets, 1) && busy.start < idle.end)
          idle.start = std::max(idle.start, busy.start);
      }
  }
  return silences;
}

std::vector<Cluster> cluster_by_time(std::vector<Silence> unsorted) {
  std::vector<Silence> silences = since_busy(std::move(unsorted));
  std::stable_sort(silences.begin(), silences.end(), [](const Silence& a, const Silence& b) {
    return a.start != b.start ? a.start < b.start : std::pair(a.src, a.dst) < std::pair(b.src, b.dst);
  });
  std::vector<Cluster> clusters;
  std::size_t live = 0;  // the clusters below this index ended too early for the remaining silences
  for (const Silence& silence : silences) {
    while (live < clusters.size() && clusters[live].end + 2 * kSecond < silence.start) ++live;
    bool placed = false;
    for (std::size_t i = live; i < clusters.size() && !placed; ++i) {
      Cluster& cluster = clusters[i];
      if (belongs(cluster, silence)) {
        cluster.silences.push_back(silence);
        note_begin(cluster, silence);
        cluster.end = std::max(cluster.end, silence.end);
        placed = true;
      } else if (echoes(cluster, silence)) {
        cluster.echoes.push_back(silence);
        placed = true;
      }
    }
    if (!placed) {
      clusters.push_back({silence.start, silence.end, 0, INT64_MAX, {silence}, {}});
      note_begin(clusters.back(), silence);
    }
  }
  return clusters;
}

std::int64_t median(std::vector<std::int64_t> values) {
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  return values[middle];
}

struct Edge {
  std::vector<const Silence*> silences;
  double total = 0;  // nanoseconds; floating point, because a forged dump may contain silences of any length
};

// Explains the pairs of a cluster by partitions of few nodes: a greedy vertex cover, which repeatedly takes the node
// with the most remaining pairs, and of several such nodes the one with the longest silences.
void cover(const Cluster& cluster, const std::vector<bool>& watched, std::size_t networks,
           std::vector<Partition>& partitions) {
  std::map<std::pair<int, int>, Edge> edges;
  std::map<std::pair<int, int>, std::vector<const Silence*>> echoes;
  // The start of the partition; 0 if it is unknown. The silence of an idle connection begins earlier, so it counts only
  // from this time on.
  const std::int64_t begin =
      cluster.begins_by == INT64_MAX ? 0 : std::min(cluster.begins, std::max(cluster.begins_by, cluster.start));
  const auto start_of = [&](const Silence& silence) {
    return silence.begin_within < 0 && !silence.idle ? silence.start
                                                     : std::min(std::max(silence.start, begin), silence.end);
  };
  for (const Silence& silence : cluster.silences) {
    Edge& edge = edges[edge_of(silence)];
    edge.silences.push_back(&silence);
    edge.total += static_cast<double>(silence.end - silence.start);
  }
  for (const Silence& silence : cluster.echoes) echoes[edge_of(silence)].push_back(&silence);

  while (!edges.empty()) {
    std::map<int, std::pair<int, double>> weight;  // by node: number of pairs, total silence
    for (const auto& [pair, edge] : edges)
      for (const int node : {pair.first, pair.second}) {
        if (node < 0) continue;
        ++weight[node].first;
        weight[node].second += edge.total;
      }
    int best = -1;
    for (const auto& [node, w] : weight)
      if (best < 0 || w > weight[best]) best = node;

    Partition partition;
    partition.node = best;
    std::vector<std::int64_t> lengths;
    std::size_t open = 0;
    bool still_fails = false;
    std::set<int> peers;
    std::set<int> failed_at;
    std::set<std::uint16_t> ports;
    bool unknown_sender = false;
    bool others_watched = true;
    double in = 0;
    double out = 0;
    bool noticed_in = false, noticed_out = false;  // a cut of the other direction, too, would have been recorded
    partition.start = INT64_MAX;
    for (auto it = edges.begin(); it != edges.end();) {
      const auto& [pair, edge] = *it;
      if (pair.first != best && pair.second != best) {
        ++it;
        continue;
      }
      const int peer = pair.first == best ? pair.second : pair.first;
      if (peer < 0) {
        unknown_sender = true;
      } else {
        peers.insert(peer);
        others_watched = others_watched && watched[static_cast<std::size_t>(peer)];
      }
      for (const Silence* silence : edge.silences) {
        const std::int64_t length = silence->end - start_of(*silence);
        if (silence->failed_at < 0) {
          partition.silent = true;
          lengths.push_back(length);
          open += silence->open ? 1 : 0;
        } else {
          failed_at.insert(silence->failed_at);
          partition.calls += silence->calls;
          partition.unseen += silence->unseen;
          partition.plain = std::max(partition.plain, silence->plain);
          partition.no_network = partition.no_network || silence->no_network;
          still_fails = still_fails || silence->open;
        }
        (silence->dst == best ? in : out) += static_cast<double>(length);
        if (!silence->from_service) (silence->dst == best ? noticed_in : noticed_out) = true;
        partition.start = std::min(partition.start, start_of(*silence));
        partition.end = std::max(partition.end, silence->end);
        partition.events += silence->events;
        if (silence->port != 0) ports.insert(silence->port);
      }
      if (const auto echo = echoes.find(pair); echo != echoes.end())
        for (const Silence* silence : echo->second) {
          partition.events += silence->events;
          if (silence->failed_at < 0) continue;
          failed_at.insert(silence->failed_at);
          partition.calls += silence->calls;
          partition.unseen += silence->unseen;
          partition.plain = std::max(partition.plain, silence->plain);
        }
      it = edges.erase(it);
    }
    partition.open = partition.silent ? 2 * open > lengths.size() : still_fails;
    partition.duration = partition.silent ? median(std::move(lengths)) : partition.end - partition.start;
    partition.failed_at.assign(failed_at.begin(), failed_at.end());
    partition.ports.assign(ports.begin(), ports.end());
    if (!unknown_sender) partition.peers.assign(peers.begin(), peers.end());
    partition.all_others = unknown_sender || peers.size() + 1 == networks;
    // The partition is one-way only if the other direction was observed and mostly stayed open, and its receiver would
    // have noticed otherwise. The open direction may be silent for some of the time, because it carries
    // retransmissions, which are sent at growing intervals.
    if (unknown_sender) {
      partition.direction = schedule::Direction::both;
    } else if (others_watched && noticed_in && out * 2 < in) {
      partition.direction = schedule::Direction::in;
    } else if (watched[static_cast<std::size_t>(best)] && noticed_out && in * 2 < out) {
      partition.direction = schedule::Direction::out;
    }
    partitions.push_back(std::move(partition));
  }
}

}  // namespace

std::vector<Partition> find_partitions(std::vector<Silence> silences, const std::vector<bool>& watched,
                                       std::size_t networks) {
  std::vector<Partition> partitions;
  for (const Cluster& cluster : cluster_by_time(std::move(silences))) cover(cluster, watched, networks, partitions);
  std::stable_sort(partitions.begin(), partitions.end(), [](const Partition& a, const Partition& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  return partitions;
}

}  // namespace rose::evidence
