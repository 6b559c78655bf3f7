// The network of one run: a client namespace with a bridge and a namespace for each node, joined
// by veth pairs. All of it lives in these namespaces; the host's own namespace never sees a link.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

inline constexpr const char* kNetnsFolder = "/run/netns";  // where `ip netns` looks
inline constexpr const char* kBridge = "rosebr0";          // in the client namespace
inline constexpr const char* kNodeLink = "rose0";          // in each node's namespace

// A new network namespace named as `ip netns add` names them, lo up.
[[nodiscard]] Result<Fd> make_netns(const std::string& name);
// That of a process, by such a name.
[[nodiscard]] Result<Fd> adopt_netns(const std::string& name, pid_t holder);
// Takes the name away; the namespace goes with its last process and descriptor. Fine when there is none.
[[nodiscard]] Result<void> remove_netns(const std::string& name);

// The port of each node in the client namespace: "rose-<node>", or "rose-p<index>" where that is too long.
[[nodiscard]] std::vector<std::string> port_names(const std::vector<std::string>& nodes);

class Network {
 public:
  struct Member {
    std::string netns;
    std::string port;
    std::string ip;
    pid_t holder = 0;  // whose namespace it is; 0: it is made
  };
  [[nodiscard]] static Result<std::unique_ptr<Network>> create(const std::string& client_netns,
                                                               const std::string& client_ip, int prefix,
                                                               const std::vector<Member>& members);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();
  // Every name that can be removed is; the first error is returned.
  Result<void> remove();
  [[nodiscard]] int client_fd() const { return client_.get(); }
  [[nodiscard]] int node_fd(std::size_t node) const { return nodes_[node].get(); }

 private:
  Network() = default;
  std::vector<std::string> names_;
  Fd client_;
  std::vector<Fd> nodes_;
};

}  // namespace rose::deploy
