#include "kernel/netlink.h"

#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/result.h"

namespace rose::kernel {
namespace {

constexpr timeval kPatience{10, 0};  // the kernel answers immediately, so a longer wait means that something is broken

// An address in the form that netlink attributes need: 4 bytes for IPv4, 16 for IPv6.
struct LinkAddress {
  explicit LinkAddress(const Address& address)
      : family(address.is_ipv4() ? AF_INET : AF_INET6), size(address.is_ipv4() ? 4 : 16) {
    std::copy(address.bytes.end() - static_cast<std::ptrdiff_t>(size), address.bytes.end(), bytes);
  }

  int family;
  std::size_t size;
  unsigned char bytes[16] = {};
};

}  // namespace

// A request under construction.
class Netlink::Request {
 public:
  Request(std::uint16_t type, std::uint16_t flags) {
    auto* header = reinterpret_cast<nlmsghdr*>(buffer_);
    header->nlmsg_type = type;
    header->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    size_ = NLMSG_HDRLEN;
  }
  template <typename T>
  T* body() {
    T* at = reinterpret_cast<T*>(buffer_ + size_);
    size_ += NLMSG_ALIGN(sizeof(T));
    ROSE_ASSERT(size_ <= sizeof buffer_);
    return at;
  }
  void put(std::uint16_t type, const void* data, std::size_t size) {
    auto* attribute = reinterpret_cast<rtattr*>(buffer_ + size_);
    ROSE_ASSERT(size_ + RTA_SPACE(size) <= sizeof buffer_);
    attribute->rta_type = type;
    attribute->rta_len = static_cast<std::uint16_t>(RTA_LENGTH(size));
    if (size > 0) std::memcpy(RTA_DATA(attribute), data, size);
    size_ += RTA_SPACE(size);
  }
  void put(std::uint16_t type, std::uint32_t value) { put(type, &value, sizeof value); }
  void put(std::uint16_t type, std::uint8_t value) { put(type, &value, sizeof value); }
  void put(std::uint16_t type, const std::string& text) { put(type, text.c_str(), text.size() + 1); }
  std::size_t open(std::uint16_t type) {
    const std::size_t at = size_;
    put(type, nullptr, 0);
    return at;
  }
  void close(std::size_t at) {
    reinterpret_cast<rtattr*>(buffer_ + at)->rta_len = static_cast<std::uint16_t>(size_ - at);
  }
  // Completes the request and returns the bytes to send.
  std::pair<const char*, std::size_t> finish() {
    reinterpret_cast<nlmsghdr*>(buffer_)->nlmsg_len = static_cast<std::uint32_t>(size_);
    return {buffer_, size_};
  }

 private:
  alignas(8) char buffer_[1024] = {};
  std::size_t size_ = 0;
};

Netlink::Netlink() : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {
  if (!fd_ || ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) != 0) error_ = errno;
}

int Netlink::ask(Request& request) {
  if (error_ != 0) return error_;
  const auto [data, size] = request.finish();
  if (::send(fd_.get(), data, size, 0) < 0) return errno;
  alignas(8) char reply[8192];
  for (;;) {
    const ssize_t n = ::recv(fd_.get(), reply, sizeof reply, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
    const auto* header = reinterpret_cast<const nlmsghdr*>(reply);
    if (static_cast<std::size_t>(n) >= NLMSG_LENGTH(sizeof(nlmsgerr)) && header->nlmsg_type == NLMSG_ERROR)
      return -static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error;
  }
}

int Netlink::up(int index) {
  Request request(RTM_NEWLINK, 0);
  auto* link = request.body<ifinfomsg>();
  link->ifi_index = index;
  link->ifi_flags = link->ifi_change = IFF_UP;
  return ask(request);
}

int Netlink::add_address(int index, const Address& address, int prefix) {
  const LinkAddress own(address);
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
  auto* body = request.body<ifaddrmsg>();
  body->ifa_family = static_cast<std::uint8_t>(own.family);
  body->ifa_prefixlen = static_cast<std::uint8_t>(prefix);
  body->ifa_index = static_cast<std::uint32_t>(index);
  // rose assigns all addresses on these links, so there are no duplicates. Without the detection of duplicates (DAD),
  // the address can be used immediately.
  if (own.family == AF_INET6) body->ifa_flags = IFA_F_NODAD;
  request.put(IFA_LOCAL, own.bytes, own.size);
  request.put(IFA_ADDRESS, own.bytes, own.size);
  return ask(request);
}

int Netlink::add_bridge(const std::string& name) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  auto* link = request.body<ifinfomsg>();
  link->ifi_flags = link->ifi_change = IFF_UP;
  request.put(IFLA_IFNAME, name);
  const std::size_t info = request.open(IFLA_LINKINFO);
  request.put(IFLA_INFO_KIND, std::string("bridge"));
  const std::size_t data = request.open(IFLA_INFO_DATA);
  // Disables snooping, because a bridge with snooping sends multicast queries of its own into the deployment.
  request.put(IFLA_BR_MCAST_SNOOPING, std::uint8_t{0});
  request.close(data);
  request.close(info);
  return ask(request);
}

int Netlink::add_veth(const std::string& name, int bridge, const std::string& peer, int peer_netns) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  auto* link = request.body<ifinfomsg>();
  link->ifi_flags = link->ifi_change = IFF_UP;
  request.put(IFLA_IFNAME, name);
  if (bridge != 0) request.put(IFLA_MASTER, static_cast<std::uint32_t>(bridge));
  const std::size_t info = request.open(IFLA_LINKINFO);
  request.put(IFLA_INFO_KIND, std::string("veth"));
  const std::size_t data = request.open(IFLA_INFO_DATA);
  const std::size_t pair = request.open(VETH_INFO_PEER);
  request.body<ifinfomsg>();
  request.put(IFLA_IFNAME, peer);
  if (peer_netns >= 0) request.put(IFLA_NET_NS_FD, static_cast<std::uint32_t>(peer_netns));
  request.close(pair);
  request.close(data);
  request.close(info);
  return ask(request);
}

int Netlink::quiet_port(int link, int bridge) {
  Request enslave(RTM_NEWLINK, 0);
  enslave.body<ifinfomsg>()->ifi_index = link;
  enslave.put(IFLA_MASTER, static_cast<std::uint32_t>(bridge));
  if (const int err = ask(enslave); err != 0) return err;
  Request quiet(RTM_SETLINK, 0);
  auto* port = quiet.body<ifinfomsg>();
  port->ifi_family = PF_BRIDGE;
  port->ifi_index = link;
  const std::size_t settings = quiet.open(IFLA_PROTINFO | NLA_F_NESTED);
  for (const std::uint16_t what :
       {IFLA_BRPORT_LEARNING, IFLA_BRPORT_UNICAST_FLOOD, IFLA_BRPORT_MCAST_FLOOD, IFLA_BRPORT_BCAST_FLOOD})
    quiet.put(what, std::uint8_t{0});
  quiet.close(settings);
  return ask(quiet);
}

int Netlink::add_default_route(const Address& address) {
  const LinkAddress gateway(address);
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
  auto* route = request.body<rtmsg>();
  route->rtm_family = static_cast<std::uint8_t>(gateway.family);
  route->rtm_table = RT_TABLE_MAIN;
  route->rtm_protocol = RTPROT_STATIC;
  route->rtm_scope = RT_SCOPE_UNIVERSE;
  route->rtm_type = RTN_UNICAST;
  request.put(RTA_GATEWAY, gateway.bytes, gateway.size);
  return ask(request);
}

int Netlink::add_rule(int family, std::uint32_t priority, std::uint8_t action,
                      const std::function<void(Request&)>& more) {
  Request request(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
  auto* rule = request.body<fib_rule_hdr>();
  rule->family = static_cast<std::uint8_t>(family);
  rule->table = action == FR_ACT_TO_TBL ? RT_TABLE_MAIN : RT_TABLE_UNSPEC;
  rule->action = action;
  request.put(FRA_PRIORITY, priority);
  more(request);
  return ask(request);
}

int Netlink::prohibit_port_by_default_route(int family, std::uint16_t port) {
  // The first rule uses the main table without its default route (the route with prefix length 0). Only packets for
  // which it has no other route get to the second rule, which refuses this port.
  const std::uint32_t prefix = 0;
  if (const int err =
          add_rule(family, 100, FR_ACT_TO_TBL, [&](Request& rule) { rule.put(FRA_SUPPRESS_PREFIXLEN, prefix); });
      err != 0)
    return err;
  const fib_rule_port_range range{port, port};
  return add_rule(family, 101, FR_ACT_PROHIBIT,
                  [&](Request& rule) { rule.put(FRA_DPORT_RANGE, &range, sizeof range); });
}

}  // namespace rose::kernel
