#include "evidence/nodes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "base/text.h"
#include "evidence/similar_nodes.h"

namespace rose::evidence {
namespace {

// The first label of a host name in lower case: "N1.prod.example.com" becomes "n1". IPv4 addresses are not shortened.
std::string short_name(std::string_view name) {
  const std::string text = lower_case(name);
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos || dot == 0 || std::isdigit(static_cast<unsigned char>(text[0]))) return text;
  return text.substr(0, dot);
}

bool loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += fmt::format("{}'{}'", out.empty() ? "" : ", ", name);
  return out;
}

// Splits "name=ip" of Meta::addresses.
std::pair<std::string, std::string> split_address(const std::string& entry) {
  const std::size_t equals = entry.rfind('=');
  if (equals == std::string::npos) return {};
  return {entry.substr(0, equals), std::string(plain_address(std::string_view(entry).substr(equals + 1)))};
}

}  // namespace

std::string_view plain_address(std::string_view address) {
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  if (address.starts_with("::ffff:") && address.find('.') != std::string_view::npos) address.remove_prefix(7);
  return address;
}

Endpoint parse_endpoint(std::string_view peer) {
  if (peer.empty() || peer.starts_with("unix:")) return {};
  std::string_view address = peer;
  std::string_view digits;
  if (peer.front() == '[') {
    const std::size_t close = peer.find(']');
    if (close == std::string_view::npos) return {};
    address = peer.substr(0, close + 1);
    if (close + 1 < peer.size() && peer[close + 1] == ':') digits = peer.substr(close + 2);
  } else if (const std::size_t colon = peer.rfind(':'); colon != std::string_view::npos && peer.find(':') == colon) {
    address = peer.substr(0, colon);
    digits = peer.substr(colon + 1);
  }
  Endpoint endpoint{plain_address(address), 0};
  if (!digits.empty()) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
    if (error != std::errc{} || end != digits.data() + digits.size() || endpoint.port < 0 || endpoint.port > 65535)
      endpoint.port = 0;
  }
  return endpoint;
}

namespace {

using ByText = std::map<std::string, int, std::less<>>;

// The names and addresses that occur in the dumps.
struct Mentioned {
  std::set<std::string> names;  // of nodes and hosts
  std::set<std::string> addresses;
};

// The name of the node to which the events of a dump belong if they name no node.
std::string default_name_of(const trace::Meta& meta) {
  if (!meta.node.empty()) return meta.node;
  if (!meta.host.empty()) return meta.host;
  return meta.nodes.size() == 1 ? meta.nodes[0] : std::string{};
}

void collect_mentioned(const Source& source, Mentioned& mentioned) {
  std::vector<bool> is_node(source.strings.size() + 1, false);
  std::vector<bool> is_address(source.strings.size() + 1, false);
  bool unnamed = false;
  for (const trace::Event& event : source.observations) {
    if (event.node == 0) unnamed = true;
    if (event.node < is_node.size()) is_node[event.node] = true;
    if (event.type == trace::EventType::nd) {
      if (event.src < is_address.size()) is_address[event.src] = true;
      if (event.dst < is_address.size()) is_address[event.dst] = true;
    }
  }
  for (std::size_t id = 1; id < is_node.size(); ++id) {
    const std::string_view text = source.str(static_cast<trace::StringId>(id));
    if (is_node[id]) mentioned.names.emplace(text);
    if (is_address[id]) mentioned.addresses.emplace(plain_address(text));
  }
  for (const std::string& name : source.meta.nodes) mentioned.names.insert(name);
  if (unnamed) mentioned.names.insert(default_name_of(source.meta));
  for (const std::string& entry : source.meta.addresses) {
    const auto [name, address] = split_address(entry);
    if (!address.empty()) mentioned.addresses.insert(address);
  }
}

// Applies --map, which has precedence over all other matches.
Result<void> take_mapped(const Evidence& inputs, const std::vector<std::string>& names, const Mentioned& mentioned,
                         ByText& by_name, ByText& by_address) {
  std::vector<std::string> known(mentioned.names.begin(), mentioned.names.end());
  known.erase(std::remove(known.begin(), known.end(), std::string{}), known.end());
  for (const auto& [host, node] : inputs.host_to_node) {
    const auto found = std::find(names.begin(), names.end(), node);
    if (found == names.end()) {
      const std::string slip = did_you_mean(node, names);
      return fail(ErrorKind::input, fmt::format("--map {}={}: the deployment has no node '{}'", host, node, node),
                  slip.empty() ? fmt::format("its nodes are {}", quoted_list(names)) : slip);
    }
    const int index = static_cast<int>(found - names.begin());
    if (mentioned.names.contains(host)) {
      by_name[host] = index;
      continue;
    }
    if (const std::string address(plain_address(host)); mentioned.addresses.contains(address)) {
      by_address[address] = index;
      continue;
    }
    // `host` may occur only in the header of a dump. All events of this dump then have another name for the node.
    bool taken = false;
    for (std::size_t i = 0; i < inputs.sources.size(); ++i) {
      const Source& source = inputs.sources[i];
      if (source.meta.host != host && source.meta.node != host) continue;
      const std::vector<std::string> of_trace = node_names(source);
      if (of_trace.size() > 1)
        return fail(ErrorKind::input,
                    fmt::format("--map {}={}: the dump of host '{}' contains several nodes", host, node, host),
                    fmt::format("name one of them: {}", quoted_list(of_trace)));
      if (of_trace.size() == 1) by_name[of_trace[0]] = index;
      taken = true;
    }
    if (taken || inputs.reported()) continue;  // `host` may be a name in logs, which the reader of logs checks
    std::vector<std::string> words = known;
    words.insert(words.end(), mentioned.addresses.begin(), mentioned.addresses.end());
    const std::string slip = did_you_mean(host, words);
    return fail(ErrorKind::input, fmt::format("--map {}={}: no dump names a host '{}'", host, node, host),
                !slip.empty()   ? slip
                : words.empty() ? std::string("the dumps name no hosts")
                                : fmt::format("the dumps name {}", quoted_list(words)));
  }
  return {};
}

// Matches a host to a node if the host's tracer recorded a unit, service, pod or container with the node's name, and no
// other host is a match for this node.
void match_labels(const Evidence& inputs, const std::vector<std::string>& names, const Mentioned& mentioned,
                  ByText& by_name, std::vector<std::string>& notes) {
  static constexpr std::array<std::string_view, 4> kNaming = {
      "service", "pod", "name", "unit"};  // other labels have the same value on many nodes
  std::map<std::string, std::map<int, std::string>>
      claims;  // by host: the nodes that it may correspond to, each with the label
  for (const Source& source : inputs.sources)
    for (const std::string& line : source.meta.labels) {
      const std::optional<trace::Label> label = trace::to_label(line);
      if (!label || !mentioned.names.contains(label->node) ||
          std::find(kNaming.begin(), kNaming.end(), label->key) == kNaming.end())
        continue;
      std::string_view value = label->value;
      if (value.ends_with(".service")) value.remove_suffix(std::string_view(".service").size());
      for (std::size_t i = 0; i < names.size(); ++i)
        if (short_name(names[i]) == short_name(value))
          claims[label->node].emplace(static_cast<int>(i), fmt::format("{} {}", label->key, label->value));
    }
  for (const auto& [host, nodes] : claims) {
    const auto& [node, why] = *nodes.begin();
    const bool wanted =
        std::any_of(claims.begin(), claims.end(),
                    [&](const auto& other) { return other.first != host && other.second.contains(node); }) ||
        std::any_of(by_name.begin(), by_name.end(), [&](const auto& entry) { return entry.second == node; });
    if (nodes.size() > 1 || wanted || by_name.contains(host)) continue;
    by_name[host] = node;
    notes.push_back(fmt::format(
        "'{}' of the dump was matched to node '{}': its tracer recorded {}; use --map {}=NODE if that is wrong", host,
        names[static_cast<std::size_t>(node)], why, host));
  }
}

// Matches by name; then by the address in the dump's header; then by labels; then by the first part of a host name.
void match_names(const Evidence& inputs, const std::vector<std::string>& names,
                 const std::vector<std::string>& test_addresses, const Mentioned& mentioned, ByText& by_name,
                 std::vector<std::string>& notes) {
  for (const std::string& name : mentioned.names) {
    if (by_name.contains(name)) continue;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) by_name[name] = static_cast<int>(found - names.begin());
  }
  for (const Source& source : inputs.sources) {
    for (const std::string& entry : source.meta.addresses) {
      const auto [name, address] = split_address(entry);
      if (address.empty() || !mentioned.names.contains(name) || by_name.contains(name)) continue;
      for (int i = 0; i < static_cast<int>(names.size()); ++i)
        if (!test_addresses[static_cast<std::size_t>(i)].empty() &&
            test_addresses[static_cast<std::size_t>(i)] == address)
          by_name[name] = i;
    }
  }
  match_labels(inputs, names, mentioned, by_name, notes);
  for (const std::string& name : mentioned.names) {
    if (by_name.contains(name) || name.empty()) continue;
    int match = NodeMap::kNone;
    for (int i = 0; i < static_cast<int>(names.size()); ++i)
      if (short_name(names[static_cast<std::size_t>(i)]) == short_name(name))
        match = match == NodeMap::kNone ? i : NodeMap::kShared;
    const bool ambiguous = std::any_of(mentioned.names.begin(), mentioned.names.end(), [&](const std::string& other) {
      return other != name && short_name(other) == short_name(name);
    });
    if (match >= 0 && !ambiguous) by_name[name] = match;
  }
}

// Matches the remaining hosts: by elimination if one host and one node are left, otherwise by behaviour. Reports those
// that still have no node.
void match_rest(const Evidence& inputs, const std::vector<std::string>& names, const Mentioned& mentioned,
                ByText& by_name, std::vector<std::string>& notes, std::set<std::vector<int>>& replicas,
                std::string& unmatched) {
  std::vector<std::string> left;
  for (const std::string& name : mentioned.names)
    if (!by_name.contains(name)) left.push_back(name);
  std::vector<int> free;
  for (int i = 0; i < static_cast<int>(names.size()); ++i)
    if (std::none_of(by_name.begin(), by_name.end(), [&](const auto& entry) { return entry.second == i; }))
      free.push_back(i);
  if (left.size() == 1 && free.size() == 1) {
    by_name[left[0]] = free[0];
    notes.push_back(
        fmt::format("'{}' of the dump was matched to node '{}', the only ones left without a match; use --map {}=NODE "
                    "if that is wrong",
                    left[0], names[static_cast<std::size_t>(free[0])], left[0]));
    left.clear();
    free.clear();
  }
  std::vector<bool> taken(names.size(), true);
  for (const int i : free) taken[static_cast<std::size_t>(i)] = false;
  for (const SimilarNode& similar : find_similar_nodes(inputs, left, taken)) {
    by_name[similar.host] = similar.node;
    const bool replica = similar.replicas.size() > 1;
    if (replica) replicas.insert(similar.replicas);
    notes.push_back(
        fmt::format("'{}' of the dump was matched to node '{}': {:.0f} % of its actions match those of '{}' in the "
                    "profile{}; use --map {}=NODE if that is wrong",
                    similar.host, names[static_cast<std::size_t>(similar.node)], similar.share * 100,
                    names[static_cast<std::size_t>(similar.node)],
                    replica ? " and those of similar nodes, which are also tried" : "", similar.host));
    std::erase(left, similar.host);
    std::erase(free, similar.node);
  }
  if (!left.empty()) {
    std::vector<std::string> nodes;
    for (const int i : free) nodes.push_back(names[static_cast<std::size_t>(i)]);
    std::vector<std::string> named;
    for (const std::string& name : left) named.push_back(name.empty() ? std::string("(no name)") : name);
    unmatched = fmt::format(
        "could not match {} of the dump to a node of the deployment, so its events are ignored; {}", quoted_list(named),
        nodes.empty() ? fmt::format("map it to a node with --map {}=NODE", named[0])
                      : fmt::format("select one of {} with --map {}=NODE", quoted_list(nodes), named[0]));
    notes.push_back(unmatched);
  }
}

}  // namespace

Result<NodeMap> NodeMap::make(const Evidence& inputs) {
  NodeMap map;
  map.inputs_ = &inputs;
  const config::Config& config = *inputs.config;
  for (const config::Node& node : config.nodes) map.names_.push_back(node.name);
  map.watched_.assign(map.names_.size(), false);
  for (std::size_t i = 0; i < config.nodes.size(); ++i) {
    const config::Node& node = config.nodes[i];
    map.networks_.push_back(static_cast<int>(config.network_owner(i)));
    const bool shared =
        !node.network_of.empty() || std::any_of(config.nodes.begin(), config.nodes.end(), [&](const auto& other) {
          return &other != &node && other.network_of != node.name && other.ip == node.ip;
        });
    map.test_addresses_.push_back(shared ? std::string{} : node.ip);
    if (!node.network_of.empty())
      map.notes_.push_back(
          fmt::format("'{}' shares the network and the address of '{}': a network fault affects both, "
                      "and is reported for '{}'",
                      node.name, node.network_of, node.network_of));
  }
  Mentioned mentioned;
  for (const Source& source : inputs.sources) {
    collect_mentioned(source, mentioned);
    map.sources_.emplace_back().default_name = default_name_of(source.meta);
  }
  ROSE_CHECK(take_mapped(inputs, map.names_, mentioned, map.by_name_, map.by_address_));
  match_names(inputs, map.names_, map.test_addresses_, mentioned, map.by_name_, map.notes_);
  std::set<std::vector<int>> replicas;
  match_rest(inputs, map.names_, mentioned, map.by_name_, map.notes_, replicas, map.unmatched_);
  for (const std::vector<int>& group : replicas) {
    std::vector<std::string>& named = map.replicas_.emplace_back();
    for (const int node : group) named.push_back(map.name(node));
  }

  // Assign addresses to nodes: --map first, then the headers of dumps, then the configuration. An address of two nodes
  // identifies neither.
  const auto claim = [&](std::string_view address, int claimed, bool firm) {
    if (address.empty()) return;
    const int node = map.network_of(claimed);
    const auto [it, fresh] = map.by_address_.emplace(std::string(address), node);
    if (!fresh && it->second != node && firm) it->second = kShared;
  };
  const auto mapped_by_user = map.by_address_;
  for (const Source& source : inputs.sources)
    for (const std::string& entry : source.meta.addresses) {
      const auto [name, address] = split_address(entry);
      if (mapped_by_user.contains(address)) continue;
      if (const auto it = map.by_name_.find(name); it != map.by_name_.end()) claim(address, it->second, true);
    }
  const auto of_headers = map.by_address_;
  for (int i = 0; i < map.count(); ++i) {
    const std::string& ip = config.nodes[static_cast<std::size_t>(i)].ip;
    if (!of_headers.contains(ip)) claim(ip, i, true);
  }
  // A tracer records packets at their receiver, so the node of an ND event owns the address `dst`.
  std::map<std::string, int> learned;
  for (std::size_t s = 0; s < inputs.sources.size(); ++s) {
    const Source& source = inputs.sources[s];
    Names& names = map.sources_[s];
    names.by_string.assign(source.strings.size() + 1, kNone);
    for (std::size_t id = 1; id < names.by_string.size(); ++id)
      if (const auto it = map.by_name_.find(source.str(static_cast<trace::StringId>(id))); it != map.by_name_.end())
        names.by_string[id] = it->second;
    if (const auto it = map.by_name_.find(names.default_name); it != map.by_name_.end())
      names.default_node = it->second;
    for (const trace::Event& event : source.observations) {
      const int node = map.of(s, event);
      if (node < 0) continue;
      map.watched_[static_cast<std::size_t>(node)] = true;
      if (event.type != trace::EventType::nd || event.dst == 0) continue;
      const int network = map.network_of(node);
      const auto [it, fresh] = learned.emplace(std::string(plain_address(source.str(event.dst))), network);
      if (!fresh && it->second != network) it->second = kShared;
    }
    for (const std::string& name : source.meta.nodes)
      if (const auto it = map.by_name_.find(name); it != map.by_name_.end())
        map.watched_[static_cast<std::size_t>(it->second)] = true;
  }
  for (const auto& [address, node] : learned)
    if (!map.by_address_.contains(address) && !map.by_name_.contains(address)) map.by_address_.emplace(address, node);
  return map;
}

int NodeMap::of(std::size_t source, const trace::Event& event) const {
  const Names& s = sources_[source];
  if (event.node == 0) return s.default_node;
  return event.node < s.by_string.size() ? s.by_string[event.node] : kNone;
}

std::string NodeMap::dump_name(std::size_t source, const trace::Event& event) const {
  return event.node == 0 ? sources_[source].default_name : std::string(inputs_->sources[source].str(event.node));
}

int NodeMap::of_address(std::string_view address) const {
  address = plain_address(address);
  if (const auto it = by_address_.find(address); it != by_address_.end()) return network_of(it->second);
  if (const auto it = by_name_.find(address); it != by_name_.end()) return it->second;
  for (int i = 0; i < count(); ++i)
    if (name(i) == address) return i;
  return loopback(address) && count() > 1 ? kShared : kNone;
}

}  // namespace rose::evidence
