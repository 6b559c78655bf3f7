// Finds the node of the deployment that a dump's host corresponds to: by --map, by name, by address, by elimination,
// and by behaviour. Production and test deployment rarely use the same names; hosts that cannot be matched are
// reported.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/diagnose.h"

namespace rose::diagnose {

class NodeMap {
 public:
  static constexpr int kNone = -1;    // no node of the deployment
  static constexpr int kShared = -2;  // an address that several nodes have, so it identifies none

  [[nodiscard]] static Result<NodeMap> make(const Inputs& inputs);

  [[nodiscard]] int count() const { return static_cast<int>(names_.size()); }
  [[nodiscard]] const std::string& name(int node) const { return names_[static_cast<std::size_t>(node)]; }
  // The node's address in the test deployment; "" if unknown or shared with others.
  [[nodiscard]] const std::string& test_address(int node) const {
    return test_addresses_[static_cast<std::size_t>(node)];
  }

  // The node of an event of inputs.traces[source].
  [[nodiscard]] int of(std::size_t source, const trace::Event& event) const;
  // The event's node as the dump names it.
  [[nodiscard]] std::string dump_name(std::size_t source, const trace::Event& event) const;
  // The node that owns the network of `node`, usually `node` itself; negative numbers are returned unchanged. An
  // address that several nodes share by design belongs to the owner: what happens to its network happens to all of
  // them.
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
  // The node with this address (without port) or name, in the form of src, dst and peer.
  [[nodiscard]] int of_address(std::string_view address) const;
  // True if a tracer watched this node. Silences towards unwatched nodes are not recorded.
  [[nodiscard]] bool watched(int node) const { return watched_[static_cast<std::size_t>(node)]; }

  // Groups of nodes that behave so similarly that a host could be any of them.
  [[nodiscard]] const std::vector<std::vector<std::string>>& replicas() const { return replicas_; }

  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // The note that lists the hosts that are none of the nodes; "": all are matched.
  [[nodiscard]] const std::string& unmatched() const { return unmatched_; }

 private:
  struct Source {
    std::string default_name;  // for events without a node
    int default_node = kNone;
    std::vector<int> by_string;  // StringId -> node
  };

  std::vector<std::string> names_;
  std::vector<std::string> test_addresses_;
  std::vector<int> networks_;  // by node
  std::vector<Source> sources_;
  std::map<std::string, int, std::less<>> by_name_;  // of the dumps
  std::map<std::string, int, std::less<>> by_address_;
  std::vector<bool> watched_;
  std::vector<std::vector<std::string>> replicas_;
  std::vector<std::string> notes_;
  std::string unmatched_;
  const Inputs* inputs_ = nullptr;
};

// "10.0.0.1", "::1": without brackets and the prefix of mapped IPv4 addresses.
[[nodiscard]] std::string_view plain_address(std::string_view address);

struct Endpoint {
  std::string_view address;  // "" if it is not an internet address
  int port = 0;              // 0 unknown
};
// "10.0.0.1:7000", "[::1]:7000", "10.0.0.1".
[[nodiscard]] Endpoint parse_endpoint(std::string_view peer);

}  // namespace rose::diagnose
