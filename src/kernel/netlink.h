// Links, addresses and routes of one network namespace, over rtnetlink. All methods return 0 or an errno.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/address.h"
#include "base/fd.h"

namespace rose::kernel {

// A connection to the kernel in the network namespace in which the constructor runs.
class Netlink {
 public:
  Netlink();

  [[nodiscard]] int up(int link);
  [[nodiscard]] int add_address(int link, const Address& address, int prefix);
  // Creates a bridge that is up and does not send multicast queries.
  [[nodiscard]] int add_bridge(const std::string& name);
  // Creates a veth pair. The end `name` is in this namespace, is up, and is a port of `bridge` (0: of no bridge). The
  // end `peer` is in the namespace to which the descriptor `peer_netns` refers (-1: in this namespace).
  [[nodiscard]] int add_veth(const std::string& name, int bridge, const std::string& peer, int peer_netns);
  // Makes `link` a port of `bridge` that receives no flooded packets and learns no addresses.
  [[nodiscard]] int quiet_port(int link, int bridge);
  [[nodiscard]] int add_default_route(const Address& gateway);
  // From now on, a connection to this port that would use the default route fails immediately with EACCES. More
  // specific routes are unaffected. `family` is AF_INET or AF_INET6.
  [[nodiscard]] int prohibit_port_by_default_route(int family, std::uint16_t port);

 private:
  class Request;
  [[nodiscard]] int add_rule(int family, std::uint32_t priority, std::uint8_t action,
                             const std::function<void(Request&)>& more);
  [[nodiscard]] int ask(Request& request);

  Fd fd_;
  int error_ = 0;  // errno of creating the socket
};

}  // namespace rose::kernel
