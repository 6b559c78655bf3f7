// The network of a run: a client namespace with a bridge, and a namespace for each node, connected by veth pairs.
// Nothing is created in the host's own namespace.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

inline constexpr const char* kNetnsFolder = "/run/netns";  // where `ip netns` looks
inline constexpr const char* kBridge = "rosebr0";          // in the client namespace
inline constexpr const char* kNodeLink = "rose0";          // in each node's namespace

// Creates a named network namespace, as `ip netns add` does, and sets its interface lo up.
[[nodiscard]] Result<Fd> make_netns(const std::string& name);
// Gives such a name to the network namespace of the process `holder`.
[[nodiscard]] Result<Fd> adopt_netns(const std::string& name, pid_t holder);
// Removes the name. The namespace disappears with its last process and descriptor. Succeeds if there is no such name.
[[nodiscard]] Result<void> remove_netns(const std::string& name);

// The port of each node in the client namespace: "rose-<node>", or "rose-p<index>" if that is too long.
[[nodiscard]] std::vector<std::string> port_names(const std::vector<std::string>& nodes);

class Network {
 public:
  struct Member {
    std::string netns;
    std::string port;
    std::string ip;
    pid_t holder = 0;  // the process whose namespace is used; 0: create one
    // If set: the index of the member in whose namespace this member is. The other fields then have no meaning.
    std::optional<std::size_t> of = std::nullopt;
    bool container = false;  // all its users may bind low ports and send pings, as in Docker's network namespaces
  };
  [[nodiscard]] static Result<std::unique_ptr<Network>> create(const std::string& client_netns,
                                                               const std::string& client_ip, int prefix,
                                                               const std::vector<Member>& members);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();
  // Removes every name that can be removed; returns the first error.
  Result<void> remove();
  [[nodiscard]] int client_fd() const { return client_.get(); }
  [[nodiscard]] int node_fd(std::size_t node) const { return nodes_[of_[node]].get(); }

 private:
  Network() = default;
  std::vector<std::string> names_;
  Fd client_;
  std::vector<Fd> nodes_;        // by member; invalid for members in the namespace of another one
  std::vector<std::size_t> of_;  // by member: the member in whose namespace it is
};

}  // namespace rose::deploy
