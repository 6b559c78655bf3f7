// Plans partitions and bad links: which packets are affected, and how.
#include <netinet/in.h>

#include <algorithm>
#include <cmath>

#include "base/address.h"
#include "base/text.h"
#include "inject/plan_maker.h"

namespace rose::inject {

using schedule::Direction;
using schedule::Fault;
using schedule::FaultKind;

Result<void> Planner::partition(const Fault& fault, std::size_t index) {
  if (!(fault.loss > 0) || fault.loss > 1) {
    return refuse(fault, ErrorKind::input, fmt::format("loss {} is out of range", fault.loss), "0 < loss <= 1");
  }
  ROSE_TRY(auto cut, rule(fault, index));
  cut.threshold = fault.loss >= 1 ? ~0U : static_cast<__u32>(std::floor(fault.loss * 4294967295.0));
  plan_.rules.push_back(cut);
  plan_.links.emplace_back();
  plan_.holds.emplace_back();
  return {};
}

Result<void> Planner::bad_link(const Fault& fault, std::size_t index) {
  ROSE_TRY(auto bad, rule(fault, index));
  bad.flags |= ROSE_RULE_LINK;
  const auto& source = fault.link;
  const bool netns = config_.deployment.network == config::Network::netns;
  if (source.corrupt > 0 && !netns) {
    return refuse(fault, ErrorKind::environment, "`corrupt` is not possible in a \"host\" deployment",
                  "the loopback interface has no checksums, so programs would receive data that no network would "
                  "deliver; set [deployment] network = \"netns\"");
  }
  if (source.payload.size() > ROSE_PAYLOAD_BYTES) {
    return refuse(fault, ErrorKind::input, fmt::format("`payload` has {} bytes", source.payload.size()),
                  fmt::format("at most {}", static_cast<int>(ROSE_PAYLOAD_BYTES)));
  }
  // Converts a probability to a multiple of 2^-32; 2^32 means always.
  const auto chance = [](double share) { return static_cast<__u64>(std::llround(share * 4294967296.0)); };
  rose_link link{};
  link.seed = (static_cast<__u64>(fault.seed) + plan_.rules.size()) * 0x9e3779b97f4a7c15ULL;
  link.count = static_cast<__u64>(fault.count);
  link.times = fault.times;
  link.connections = source.connections ? 1 : 0;
  link.lose = chance(source.loss);
  link.duplicate = chance(source.duplicate);
  link.corrupt = chance(source.corrupt);
  link.hold = source.delay_ns > 0 || source.rate > 0 ? 1 : 0;
  link.payload_length = static_cast<__u32>(source.payload.size());
  std::copy(source.payload.begin(), source.payload.end(), link.payload);
  HoldRule hold;
  if (link.hold != 0) hold = {source.delay_ns, source.jitter_ns, chance(source.reorder), source.rate, link.seed};
  plan_.rules.push_back(bad);
  plan_.links.push_back(link);
  plan_.holds.push_back(hold);
  return {};
}

// Determines the packets that a partition or a bad link affects.
Result<rose_rule> Planner::rule(const Fault& fault, std::size_t index) {
  const bool netns = config_.deployment.network == config::Network::netns;
  const auto number = static_cast<__u32>(plan_.rules.size());
  rose_rule rule{};
  rule.chain = static_cast<__u32>(index);
  rule.direction = fault.direction == Direction::in    ? ROSE_IN
                   : fault.direction == Direction::out ? ROSE_OUT
                                                       : ROSE_BOTH;
  if (fault.protocol == "tcp") {
    rule.protocol = IPPROTO_TCP;
  } else if (fault.protocol == "udp") {
    rule.protocol = IPPROTO_UDP;
  } else if (!fault.protocol.empty()) {
    return refuse(fault, ErrorKind::input, fmt::format("unknown protocol '{}'", fault.protocol), "\"tcp\" or \"udp\"");
  }
  if (fault.reject) rule.flags |= ROSE_RULE_REJECT;
  if (!fault.ports.empty()) rule.flags |= ROSE_RULE_PORTS;
  for (const auto port : fault.ports) plan_.rule_ports.push_back({.rule = number, .port = port});

  // Nodes that share a network are affected together.
  const auto add = [this](__u64* set, std::size_t node) {
    for (const std::size_t one : config_.network_members(node)) set[one / 64] |= __u64{1} << (one % 64);
  };
  const auto has = [](const __u64* set, std::size_t node) { return ((set[node / 64] >> (node % 64)) & 1) != 0; };
  std::vector<std::size_t> ends;
  const std::uint32_t own = plan_.chains[index].data.node;
  if (own >= ROSE_ROLE_NODES) {
    rule.flags |= ROSE_RULE_BOUND;
    if (!fault.side.empty()) return refuse(fault, ErrorKind::input, "a role and nodes cannot be on one side");
    for (const std::size_t node : nodes_at(own))
      if (const std::size_t owner = config_.network_owner(node); owner != node)
        return refuse(fault, ErrorKind::input,
                      fmt::format("'{}' may be '{}', which shares the network of '{}'", fault.node,
                                  config_.nodes[node].name, config_.nodes[owner].name),
                      fmt::format("name the network: node = \"{}\"", config_.nodes[owner].name));
  } else {
    add(rule.side, own);
  }
  for (const std::size_t node : nodes_at(own)) ends.push_back(node);
  for (const auto& name : fault.side) {
    auto node = node_index(name, true);
    if (!node) return within(fault, std::move(node).error());
    add(rule.side, *node);
    ends.push_back(*node);
  }
  // A bad link is applied at the bridge port of the packet's sender. The sender can be any node, so the ports of all
  // nodes are watched.
  const bool everywhere = fault.kind == FaultKind::network && netns;
  for (const std::size_t node : everywhere ? nodes_at(ROSE_ANY_NODE) : ends) {
    const std::size_t owner = config_.network_owner(node);
    if (std::find(plan_.cut.begin(), plan_.cut.end(), owner) == plan_.cut.end()) plan_.cut.push_back(owner);
  }
  std::size_t peers = 0;
  for (const auto& name : fault.peers) {
    const bool is_node = std::find(plan_.nodes.begin(), plan_.nodes.end(), name) != plan_.nodes.end();
    if (const auto range = parse_address_range(name); range && !is_node) {
      if (fault.reject && !netns && !range->is_loopback()) {
        return refuse(fault, ErrorKind::environment,
                      fmt::format("packets to and from '{}' cannot be answered in a \"host\" deployment", name),
                      "omit action = \"reject\", or set [deployment] network = \"netns\"");
      }
      rose_net net{.prefix = static_cast<__u32>(32 + range->prefix), .rule = number, .ip = {}};
      std::copy(range->address.bytes.begin(), range->address.bytes.end(), net.ip);
      plan_.rule_nets.push_back(net);
      rule.flags |= ROSE_RULE_NETS;
      ++peers;
      continue;
    }
    if (schedule::role_of(name)) {
      return refuse(fault, ErrorKind::input, fmt::format("'{}' in `peers` is a role", name),
                    "a role is possible as the fault's `node`: name it there and the other side in `peers` (swap "
                    "\"in\" and \"out\")");
    }
    auto peer = node_index(name, true);
    if (!peer) return within(fault, std::move(peer).error().in("`peers`"));
    if (has(rule.side, *peer)) {
      const bool named =
          name == fault.node || std::find(fault.side.begin(), fault.side.end(), name) != fault.side.end();
      if (named) return refuse(fault, ErrorKind::input, "a node has no link to itself");
      return refuse(
          fault, ErrorKind::input,
          fmt::format("'{}' shares the network of a node on the other side, so there is no link between them", name));
    }
    add(rule.peers, *peer);
    ends.push_back(*peer);
    ++peers;
  }
  if (fault.peers.empty()) {
    rule.flags |= ROSE_RULE_OTHERS;
    for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
      if (has(rule.side, i)) continue;
      ends.push_back(i);
      ++peers;
    }
  }
  if (peers == 0) return refuse(fault, ErrorKind::input, "there is no other node to be linked to");
  for (const std::size_t end : ends) {
    if (!netns || !config_.nodes[end].attach) continue;
    return refuse(fault, ErrorKind::environment,
                  fmt::format("node '{}' was not started by rose and is not in the netns deployment's network",
                              config_.nodes[end].name),
                  "set [deployment] network = \"host\"");
  }
  return rule;
}

}  // namespace rose::inject
