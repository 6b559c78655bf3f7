// Checks across nodes: unique names, references to other nodes, addresses.
#include <algorithm>
#include <map>

#include "base/address.h"
#include "base/text.h"
#include "config/config_reader.h"
#include "config/subnet.h"

namespace rose::config {

void ConfigReader::check_names() {
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
    const std::string& name = config_.nodes[i].name;
    const auto [it, fresh] = seen.emplace(variable_name(name), i);
    if (fresh) continue;
    const Node& other = config_.nodes[it->second];
    if (other.name == name)
      problems_.add(places_[i].name, fmt::format("node.name: '{}' is taken by the node in line {}, names must differ",
                                                 name, other.line));
    else
      problems_.add(places_[i].name, fmt::format("node.name: '{}' and '{}' (line {}) give the same variable, "
                                                 "ROSE_IP_{}; names must differ in more than '-' and '_'",
                                                 name, other.name, other.line, it->first));
  }
}

void ConfigReader::check_named_nodes() {
  std::vector<std::string> variables;
  for (const Node& node : config_.nodes) variables.push_back(variable_name(node.name));
  for (const NamedNode& named : named_nodes_) {
    if (std::find(variables.begin(), variables.end(), named.name) != variables.end()) continue;
    std::string accepted;
    for (const std::string& variable : variables)
      accepted += fmt::format("{}${{ip_{}}}", accepted.empty() ? "" : ", ", variable);
    problems_.add(named.place,
                  fmt::format("{}: {} names no node, accepted are {}", named.key,
                              toml::quoted("${ip_" + named.name + "}"), accepted),
                  "a '-' or '.' in a node's name becomes '_'");
  }
}

void ConfigReader::assign_addresses() {
  const Subnet subnet = subnet_of(config_.deployment);
  // rose does not start attached nodes, so it cannot choose their addresses. Nodes that share a network namespace have
  // the address of its owner.
  const auto fixed = [](const Node& node) { return node.attach.has_value() || !node.network_of.empty(); };
  std::map<std::uint32_t, const Node*> taken;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
    Node& node = config_.nodes[i];
    if (fixed(node)) continue;
    ++wanted;
    if (node.ip.empty()) continue;
    const auto address = parse_address(node.ip);
    const auto wrong = [&](std::string_view why) {
      problems_.add(places_[i].ip, fmt::format("node.ip: '{}' {}", node.ip, why));
    };
    const std::string range =
        fmt::format("{} to {} are accepted", subnet.text(subnet.network() + 1), subnet.text(subnet.client() - 1));
    if (!address || !subnet.contains(*address))
      wrong(fmt::format("is not in the subnet {}, {}", config_.deployment.subnet, range));
    else if (address->tail() == subnet.network() || address->tail() == subnet.last())
      wrong(fmt::format("is the {} address of {}, {}",
                        address->tail() == subnet.network() ? "network"
                        : address->is_ipv4()                ? "broadcast"
                                                            : "last",
                        config_.deployment.subnet, range));
    else if (address->tail() == subnet.client()) wrong(fmt::format("is the client's address, {}", range));
    else if (const auto [it, fresh] = taken.emplace(address->tail(), &node); !fresh)
      wrong(fmt::format("is taken by node '{}', addresses must differ", it->second->name));
    else node.ip = address->text();  // normalised, because an IPv6 address can be spelled in several ways
  }
  if (problems_.any()) return;
  // The first and last addresses of the subnet and the client's address are not available to nodes.
  const std::size_t room = subnet.last() - subnet.network() - 2;
  if (wanted > room) {
    problems_.add(
        subnet_place_,
        fmt::format("deployment.subnet: '{}' has room for {} nodes, {} are configured", config_.deployment.subnet, room,
                    wanted),
        fmt::format("give a larger subnet, such as \"{}\"", subnet.is_ipv4() ? "10.77.0.0/16" : "fd00:77::/64"));
    return;
  }
  std::uint32_t next = subnet.network() + 1;
  for (Node& node : config_.nodes) {
    if (fixed(node) || !node.ip.empty()) continue;
    while (taken.contains(next)) ++next;
    taken.emplace(next, &node);
    node.ip = subnet.text(next);
  }
  for (std::size_t i = 0; i < config_.nodes.size(); ++i)
    config_.nodes[i].ip = config_.nodes[config_.network_owner(i)].ip;
}

}  // namespace rose::config
