#include "evidence/similar_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/ports.h"
#include "evidence/nodes.h"
#include "kernel/syscalls.h"
#include "profile/profile.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

constexpr std::size_t kMostBehaviours = 4096;  // the most behaviours of one host; further behaviours are ignored

// Only the last component of the path is compared, because folders differ between deployments.
std::string behaviour_of_call(std::string_view syscall, std::string_view path) {
  return fmt::format("{} {}", syscall, path.empty() ? std::string{} : profile::tail_pattern(path, 1));
}

// The behaviour "makes this call to another host of the dump". The address and ephemeral ports are left out, because
// they differ between deployments. The direction of connections distinguishes nodes: followers connect to their leader.
std::string behaviour_towards(std::string_view syscall, int port) {
  return port > 0 && port < kFirstClientPort ? fmt::format("{} to one of them at port {}", syscall, port)
                                             : fmt::format("{} to one of them", syscall);
}
// The behaviour of the host to which such a call is made.
std::string behaviour_from(std::string_view syscall, int port) {
  return behaviour_towards(syscall, port) + ", done to it";
}

// The owners of addresses. An address that several hosts or nodes have identifies none of them.
class Addresses {
 public:
  static constexpr int kAmbiguous = -1;

  void add(std::string_view address, int owner) {
    if (address.empty() || address.starts_with("127.") || address == "::1") return;
    const auto [it, fresh] = owners_.emplace(std::string(address), owner);
    if (!fresh && it->second != owner) it->second = kAmbiguous;
  }
  [[nodiscard]] int owner(std::string_view address) const {
    const auto it = owners_.find(address);
    return it == owners_.end() ? kAmbiguous : it->second;
  }

 private:
  std::map<std::string, int, std::less<>> owners_;
};

Addresses addresses_of_nodes(const config::Config& config) {
  Addresses addresses;
  for (std::size_t i = 0; i < config.nodes.size(); ++i)
    addresses.add(config.nodes[i].ip, static_cast<int>(config.network_owner(i)));
  return addresses;
}

// Numbers the behaviours of nodes and hosts. Those in the profile have the lowest numbers.
class Behaviours {
 public:
  // `among`: also compares the connections between hosts; the dump must contain addresses for that.
  Behaviours(const Evidence& inputs, bool among) {
    const auto each = [&](const std::string& node, const std::string& behaviour, bool only_new = false) {
      const std::uint32_t number = of(behaviour);
      if (only_new && number < fault_free_) return;
      if (number >= nodes_.size()) nodes_.resize(number + 1, std::vector<bool>(inputs.config->nodes.size()));
      for (std::size_t i = 0; i < inputs.config->nodes.size(); ++i)
        if (node == "*" || node == inputs.config->nodes[i].name) nodes_[number][i] = true;
    };
    for (const auto* kinds : {&inputs.profile->state_changes, &inputs.profile->failures})
      for (const profile::CallKind& kind : *kinds) each(kind.node, behaviour_of_call(kind.syscall, kind.path));
    if (among) {
      const Addresses addresses = addresses_of_nodes(*inputs.config);
      for (const profile::CallKind& kind : inputs.profile->state_changes) {
        const Endpoint peer = parse_endpoint(kind.peer);
        const int other = addresses.owner(peer.address);
        if (other < 0 || inputs.config->nodes[static_cast<std::size_t>(other)].name == kind.node) continue;
        each(kind.node, behaviour_towards(kind.syscall, peer.port));
        each(inputs.config->nodes[static_cast<std::size_t>(other)].name, behaviour_from(kind.syscall, peer.port));
      }
    }
    for (const profile::FunctionRate& rate : inputs.profile->functions)
      if (rate.count > 0) each(rate.node, rate.function + "()");
    all_.resize(inputs.config->nodes.size());
    for (const std::vector<bool>& by : nodes_)
      for (std::size_t i = 0; i < all_.size(); ++i) all_[i] += by[i] ? weight(by) : 0;
    // A function that no fault-free run entered still identifies the node whose program has it.
    fault_free_ = nodes_.size();
    for (const profile::FunctionRate& rate : inputs.profile->functions)
      if (rate.count == 0) each(rate.node, rate.function + "()", true);
  }

  [[nodiscard]] std::uint32_t of(const std::string& behaviour) {
    return numbers_.try_emplace(behaviour, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  [[nodiscard]] bool known(std::uint32_t behaviour) const { return behaviour < nodes_.size(); }
  // For each node: whether it shows this behaviour.
  [[nodiscard]] const std::vector<bool>& nodes(std::uint32_t behaviour) const { return nodes_[behaviour]; }
  // The inverse of the number of nodes that show a behaviour, because a behaviour of few nodes distinguishes them best.
  static double weight(const std::vector<bool>& by) {
    return 1.0 / static_cast<double>(std::max<std::ptrdiff_t>(1, std::count(by.begin(), by.end(), true)));
  }
  // The total weight of the fault-free behaviour of a node.
  [[nodiscard]] double all(std::size_t node) const { return all_[node]; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::vector<bool>> nodes_;
  std::size_t fault_free_ = 0;  // behaviours below this number occurred in fault-free runs
  std::vector<double> all_;
};

// The connections between the hosts of the dump: by host, its behaviour, and the hosts that it is connected to.
struct Connections {
  std::map<std::string, std::set<std::string>, std::less<>> behaviours;
  std::map<std::string, std::set<std::string>, std::less<>> connected;
};

Connections connections_among(const Evidence& inputs) {
  std::map<std::string, int, std::less<>> numbers;
  std::vector<std::string_view> names;
  const auto number_of = [&](std::string_view name) {
    const auto [it, fresh] = numbers.emplace(std::string(name), static_cast<int>(names.size()));
    if (fresh) names.push_back(it->first);
    return it->second;
  };
  Addresses addresses;
  for (const Source& source : inputs.sources)
    for (const std::string& entry : source.meta.addresses)
      if (const std::size_t equals = entry.rfind('='); equals != std::string::npos)
        addresses.add(plain_address(std::string_view(entry).substr(equals + 1)),
                      number_of(std::string_view(entry).substr(0, equals)));
  Connections found;
  for (const Source& source : inputs.sources) {
    std::set<std::pair<std::uint64_t, trace::StringId>>
        seen;  // pairs of a host's system call and its peer that were counted, because each pair counts only once
    for (const trace::Event& event : source.observations) {
      if (event.type != trace::EventType::sys || event.peer == 0 || event.node == 0) continue;
      if (!seen.emplace((std::uint64_t{event.node} << 16) | static_cast<std::uint16_t>(event.syscall), event.peer)
               .second)
        continue;
      const Endpoint peer = parse_endpoint(source.str(event.peer));
      const int other = addresses.owner(peer.address);
      if (other < 0 || names[static_cast<std::size_t>(other)] == source.str(event.node)) continue;
      const std::string syscall = kernel::syscall_name(event.syscall);
      const std::string host(source.str(event.node)), other_host(names[static_cast<std::size_t>(other)]);
      found.behaviours[host].insert(behaviour_towards(syscall, peer.port));
      found.behaviours[other_host].insert(behaviour_from(syscall, peer.port));
      found.connected[host].insert(other_host);
      found.connected[other_host].insert(host);
    }
  }
  return found;
}

struct Host {
  std::vector<std::uint32_t> behaviours;
  std::vector<bool> has;  // by behaviour: whether the host shows it
  std::uint64_t failures = 0;
  std::int64_t fault_ts =
      0;  // time of its last process or network fault, so that hosts of the last incident are matched first
};

std::map<std::string, Host, std::less<>> behaviours_of_hosts(const Evidence& inputs,
                                                             const std::vector<std::string>& names,
                                                             Behaviours& behaviours, const Connections& among) {
  std::map<std::string, Host, std::less<>> hosts;
  const auto does = [](Host& host, std::uint32_t behaviour) {
    if (behaviour >= host.has.size()) host.has.resize(behaviour + 1);
    if (host.has[behaviour]) return;
    host.has[behaviour] = true;
    host.behaviours.push_back(behaviour);
  };
  for (const std::string& name : names) {
    Host& host = hosts.try_emplace(name).first->second;
    if (const auto to_others = among.behaviours.find(name); to_others != among.behaviours.end())
      for (const std::string& behaviour : to_others->second) does(host, behaviours.of(behaviour));
  }
  for (const Source& source : inputs.sources) {
    std::vector<Host*> host_of(source.strings.size() + 1, nullptr);
    for (std::size_t id = 1; id < host_of.size(); ++id)
      if (const auto it = hosts.find(source.str(static_cast<trace::StringId>(id))); it != hosts.end())
        host_of[id] = &it->second;
    // by call and path, or by function: the number of the behaviour, so that its text is built once
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    for (const trace::Event& event : source.observations) {
      Host* host = event.node < host_of.size() ? host_of[event.node] : nullptr;
      if (host == nullptr) continue;
      if (event.type == trace::EventType::scf || event.type == trace::EventType::ps) ++host->failures;
      if (event.type == trace::EventType::nd ||
          (event.type == trace::EventType::ps && event.state != trace::ProcessState::started &&
           event.state != trace::ProcessState::exited && (event.flags & trace::kPlanned) == 0))
        host->fault_ts = std::max(host->fault_ts, event.ts_ns);
      if (host->behaviours.size() >= kMostBehaviours) continue;
      const bool failed = event.type == trace::EventType::scf;
      const bool call = failed || event.type == trace::EventType::sys;
      if (!call && event.type != trace::EventType::af) continue;
      const std::uint64_t key =
          call ? (static_cast<std::uint64_t>(static_cast<std::uint16_t>(event.syscall)) << 32) | event.path
               : (std::uint64_t{1} << 48) | event.function;
      const auto [number, fresh] = numbers.try_emplace(key, 0);
      if (fresh)
        number->second =
            behaviours.of(call ? behaviour_of_call(kernel::syscall_name(event.syscall), source.str(event.path))
                               : std::string(source.str(event.function)) + "()");
      const std::uint32_t behaviour = number->second;
      // Hundreds of kinds of calls fail on a busy production host. Those that no node's profile contains are not
      // typical of any node.
      if (failed && !behaviours.known(behaviour)) continue;
      does(*host, behaviour);
    }
  }
  return hosts;
}

// `share`: the share of the host's behaviour that the node shows, too. `covered`: the share of the node's behaviour
// that the host shows, too.
struct Similarity {
  double share = 0, covered = 0;
  [[nodiscard]] double both() const {
    return share + covered > 0 ? 2 * share * covered / (share + covered) : 0;
  }  // harmonic mean
};

// The nodes that a host may correspond to; empty if none shows enough of the host's behaviour.
std::vector<int> matching_nodes(const std::vector<Similarity>& nodes, const std::vector<bool>& is_connected) {
  double best = 0;
  for (const Similarity& node : nodes) best = std::max(best, node.share);
  if (best < kLeastSimilarity) return {};
  // Of the nodes with the best share, take those with the least additional behaviour: a follower serves clients like
  // its leader and also connects to the leader, so a host that only serves clients is the leader.
  double most = 0;
  for (const Similarity& node : nodes)
    if (node.share >= best - kReplicaDifference) most = std::max(most, node.covered);
  std::vector<int> replicas, apart;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].share >= best - kReplicaDifference && nodes[i].covered >= most - kReplicaDifference)
      replicas.push_back(static_cast<int>(i));
    if (nodes[i].share >= kLeastSimilarity && !is_connected[i]) apart.push_back(static_cast<int>(i));
  }
  // Two hosts that connect to each other are different nodes, even if both behave like the leader because a follower
  // took over. If that rules out all replicas, take the most similar of the other nodes.
  const auto at = [](int node) { return static_cast<std::size_t>(node); };
  if (apart.empty() || std::any_of(replicas.begin(), replicas.end(), [&](int node) { return !is_connected[at(node)]; }))
    return replicas;
  return {*std::max_element(apart.begin(), apart.end(),
                            [&](int x, int y) { return nodes[at(x)].both() < nodes[at(y)].both(); })};
}

}  // namespace

std::vector<SimilarNode> find_similar_nodes(const Evidence& inputs, const std::vector<std::string>& names,
                                            const std::vector<bool>& taken) {
  std::vector<SimilarNode> found;
  if (!inputs.profile || names.empty()) return found;
  const Connections among = connections_among(inputs);
  Behaviours behaviours(inputs, !among.behaviours.empty());
  const std::size_t nodes = inputs.config->nodes.size();
  const auto hosts = behaviours_of_hosts(inputs, names, behaviours, among);
  std::vector<std::pair<std::pair<std::int64_t, std::uint64_t>, std::string>> order;
  for (const auto& [name, host] : hosts) order.push_back({{host.fault_ts, host.failures}, name});
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> hosts_of_node(nodes);
  for (std::size_t i = 0; i < taken.size() && i < hosts_of_node.size(); ++i) hosts_of_node[i] = taken[i] ? 1 : 0;
  const auto match = [&](const std::string& name, std::size_t least_behaviours, bool only_free) {
    const Host& host = hosts.find(name)->second;
    std::vector<double> shares(nodes);
    double all = 0;
    std::size_t known_count = 0;
    for (const std::uint32_t behaviour : host.behaviours) {
      if (!behaviours.known(behaviour)) {
        all += 1.0 / static_cast<double>(nodes);  // behaviour of another program, which no node runs
        continue;
      }
      ++known_count;
      const std::vector<bool>& by = behaviours.nodes(behaviour);
      const double weight = Behaviours::weight(by);
      all += weight;
      for (std::size_t i = 0; i < nodes; ++i) shares[i] += by[i] ? weight : 0;
    }
    if (known_count < least_behaviours || all <= 0) return false;
    std::vector<Similarity> similarity(nodes);
    for (std::size_t i = 0; i < nodes; ++i)
      similarity[i] = {shares[i] / all, behaviours.all(i) > 0 ? shares[i] / behaviours.all(i) : 0};
    std::vector<bool> is_connected(nodes);
    if (const auto connected = among.connected.find(name); connected != among.connected.end())
      for (const SimilarNode& other : found)
        if (connected->second.contains(other.host)) is_connected[static_cast<std::size_t>(other.node)] = true;
    SimilarNode match_found{name, -1, 0, matching_nodes(similarity, is_connected)};
    if (match_found.replicas.empty()) return false;
    const auto fewer = [&](int x, int y) {
      return hosts_of_node[static_cast<std::size_t>(x)] < hosts_of_node[static_cast<std::size_t>(y)];
    };
    match_found.node = *std::min_element(match_found.replicas.begin(), match_found.replicas.end(), fewer);
    match_found.share = similarity[static_cast<std::size_t>(match_found.node)].share;
    if (only_free && hosts_of_node[static_cast<std::size_t>(match_found.node)] > 0) return false;
    ++hosts_of_node[static_cast<std::size_t>(match_found.node)];
    found.push_back(std::move(match_found));
    return true;
  };
  std::vector<std::string> unmatched;
  for (const auto& [most, name] : order)
    if (!match(name, kFewBehaviours, false)) unmatched.push_back(name);
  // Some programs make few recognisable calls. The host of such a program is matched to a node that no other host
  // corresponds to; hosts of the last incident come first.
  std::erase_if(unmatched, [&](const std::string& name) { return match(name, 1, true); });
  // A window that began late contains little behaviour of any host. One behaviour is then sufficient: ignoring the
  // failures of the host would be worse.
  for (const std::string& name : unmatched) match(name, 1, false);
  return found;
}

}  // namespace rose::evidence
