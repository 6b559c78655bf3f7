// Matches the hosts of the dumps to nodes of the deployment: by --map, name, address, elimination and behaviour,
// because production and test deployment rarely use the same names. Hosts that cannot be matched are reported.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evidence/evidence.h"

namespace rose::evidence {

class NodeMap {
 public:
  static constexpr int kNone = -1;    // the host corresponds to no node
  static constexpr int kShared = -2;  // several nodes have the address, so it identifies none

  [[nodiscard]] static Result<NodeMap> make(const Evidence& inputs);

  [[nodiscard]] int count() const { return static_cast<int>(names_.size()); }
  [[nodiscard]] const std::string& name(int node) const { return names_[static_cast<std::size_t>(node)]; }
  // The node's address in the test deployment; "" if it is unknown or shared with other nodes.
  [[nodiscard]] const std::string& test_address(int node) const {
    return test_addresses_[static_cast<std::size_t>(node)];
  }

  // The node of an event of inputs.sources[source].
  [[nodiscard]] int of(std::size_t source, const trace::Event& event) const;
  // The name of the event's node in the dump.
  [[nodiscard]] std::string dump_name(std::size_t source, const trace::Event& event) const;
  // The node that owns the network of `node`, usually `node` itself; negative numbers are returned unchanged. If nodes
  // share a network by configuration (`network_of`), a network fault affects all of them. So the owner stands for all
  // of them, and their common address identifies the owner.
  [[nodiscard]] int network_of(int node) const { return node < 0 ? node : networks_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const std::vector<int>& networks() const { return networks_; }
  [[nodiscard]] bool shares_network(int node) const {
    return node >= 0 && std::count(networks_.begin(), networks_.end(), network_of(node)) > 1;
  }
  [[nodiscard]] std::size_t network_count() const {
    std::size_t own = 0;
    for (int node = 0; node < count(); ++node) own += network_of(node) == node ? 1 : 0;
    return own;
  }
  // The node with this address (without a port) or name, as in the fields src, dst and peer of events; kNone or kShared
  // if it does not identify one node.
  [[nodiscard]] int of_address(std::string_view address) const;
  // True if a dump contains events of this node. Silences of packets that arrive at a node were recorded only if the
  // node is watched.
  [[nodiscard]] bool watched(int node) const { return watched_[static_cast<std::size_t>(node)]; }

  // Groups of nodes that behave so similarly that a host may correspond to any of them.
  [[nodiscard]] const std::vector<std::vector<std::string>>& replicas() const { return replicas_; }

  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // The note about hosts that correspond to no node; "": all are matched.
  [[nodiscard]] const std::string& unmatched() const { return unmatched_; }

 private:
  struct Names {               // the names in one source
    std::string default_name;  // the name for events without a node
    int default_node = kNone;
    std::vector<int> by_string;  // StringId -> node
  };

  std::vector<std::string> names_;
  std::vector<std::string> test_addresses_;
  std::vector<int> networks_;  // by node: the node that owns its network
  std::vector<Names> sources_;
  std::map<std::string, int, std::less<>> by_name_;  // names in the dumps
  std::map<std::string, int, std::less<>> by_address_;
  std::vector<bool> watched_;
  std::vector<std::vector<std::string>> replicas_;
  std::vector<std::string> notes_;
  std::string unmatched_;
  const Evidence* inputs_ = nullptr;
};

// Removes brackets and the prefix of mapped IPv4 addresses: "[::1]" becomes "::1", "::ffff:10.0.0.1" becomes
// "10.0.0.1".
[[nodiscard]] std::string_view plain_address(std::string_view address);

struct Endpoint {
  std::string_view address;  // "" if it is not an IP address
  int port = 0;              // 0: unknown
};
// Parses "10.0.0.1:7000", "[::1]:7000" or "10.0.0.1".
[[nodiscard]] Endpoint parse_endpoint(std::string_view peer);

}  // namespace rose::evidence
