// Links, addresses and routes of one network namespace, by rtnetlink. All answer 0 or an errno.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/address.h"
#include "base/fd.h"

namespace rose::kernel {

// A socket of the namespace that its thread is in when it is made, and that it keeps.
class Netlink {
 public:
  Netlink();

  [[nodiscard]] int up(int link);
  [[nodiscard]] int add_address(int link, const Address& address, int prefix);
  // Up, and without multicast queries of its own.
  [[nodiscard]] int add_bridge(const std::string& name);
  // `name` here, up, and a port of `bridge` unless that is 0; `peer` in the namespace `peer_netns`, here when that is
  // -1.
  [[nodiscard]] int add_veth(const std::string& name, int bridge, const std::string& peer, int peer_netns);
  // Makes `link` a port of `bridge` that is sent nothing by itself, and whose senders are not remembered.
  [[nodiscard]] int quiet_port(int link, int bridge);
  [[nodiscard]] int add_default_route(const Address& gateway);
  // What would take the default route to this port is refused at once (EACCES); other routes lead there as ever.
  // AF_INET or AF_INET6.
  [[nodiscard]] int prohibit_port_by_default_route(int family, std::uint16_t port);

 private:
  class Request;
  [[nodiscard]] int add_rule(int family, std::uint32_t priority, std::uint8_t action,
                             const std::function<void(Request&)>& more);
  [[nodiscard]] int ask(Request& request);

  Fd fd_;
  int error_ = 0;  // of making the socket
};

}  // namespace rose::kernel
