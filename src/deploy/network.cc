#include "deploy/network.h"

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/address.h"
#include "base/file.h"
#include "base/log.h"
#include "deploy/deployment.h"

namespace rose::deploy {
namespace {

constexpr const char* kNeeded =
    "run as root on a kernel with network namespaces, bridge and veth; in a container, with --privileged; "
    "or use [deployment] network = \"host\"";

Unexpected environment(std::string_view what, int err) {
  return fail(ErrorKind::environment, fmt::format("cannot {}: {}", what, std::strerror(err)), kNeeded);
}

// An address in netlink's form.
struct LinkAddress {
  explicit LinkAddress(const Address& address)
      : family(address.is_ipv4() ? AF_INET : AF_INET6), size(address.is_ipv4() ? 4 : 16) {
    std::copy(address.bytes.end() - static_cast<std::ptrdiff_t>(size), address.bytes.end(), bytes);
  }

  int family;
  std::size_t size;
  unsigned char bytes[16] = {};
};

Result<LinkAddress> link_address(const std::string& text) {
  if (const auto address = parse_address(text)) return LinkAddress(*address);
  return fail(ErrorKind::input, fmt::format("'{}' is not an IP address", text));
}

// One rtnetlink request under construction.
class Request {
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
  // Finished: the bytes to send.
  std::pair<const char*, std::size_t> finish() {
    reinterpret_cast<nlmsghdr*>(buffer_)->nlmsg_len = static_cast<std::uint32_t>(size_);
    return {buffer_, size_};
  }

 private:
  alignas(8) char buffer_[1024] = {};
  std::size_t size_ = 0;
};

// A socket of the namespace of the thread that opens it; it stays with that namespace.
class Netlink {
 public:
  Netlink() : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {}

  // 0 or an errno.
  [[nodiscard]] int ask(Request& request) {
    if (!fd_) return EAFNOSUPPORT;
    const auto [data, size] = request.finish();
    if (::send(fd_.get(), data, size, 0) < 0) return errno;
    alignas(8) char reply[4096];
    for (;;) {
      const ssize_t n = ::recv(fd_.get(), reply, sizeof reply, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno;
      const auto* header = reinterpret_cast<const nlmsghdr*>(reply);
      if (static_cast<std::size_t>(n) >= NLMSG_LENGTH(sizeof(nlmsgerr)) && header->nlmsg_type == NLMSG_ERROR)
        return -static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error;
    }
  }

  [[nodiscard]] int up(int index) {
    Request request(RTM_NEWLINK, 0);
    auto* link = request.body<ifinfomsg>();
    link->ifi_index = index;
    link->ifi_flags = link->ifi_change = IFF_UP;
    return ask(request);
  }
  [[nodiscard]] int add_address(int index, const LinkAddress& address, int prefix) {
    Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    auto* body = request.body<ifaddrmsg>();
    body->ifa_family = static_cast<std::uint8_t>(address.family);
    body->ifa_prefixlen = static_cast<std::uint8_t>(prefix);
    body->ifa_index = static_cast<std::uint32_t>(index);
    // Duplicates cannot exist here; without detection the address works at once.
    if (address.family == AF_INET6) body->ifa_flags = IFA_F_NODAD;
    request.put(IFA_LOCAL, address.bytes, address.size);
    request.put(IFA_ADDRESS, address.bytes, address.size);
    return ask(request);
  }
  [[nodiscard]] int add_bridge(const char* name) {
    Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    auto* link = request.body<ifinfomsg>();
    link->ifi_flags = link->ifi_change = IFF_UP;
    request.put(IFLA_IFNAME, std::string(name));
    const std::size_t info = request.open(IFLA_LINKINFO);
    request.put(IFLA_INFO_KIND, std::string("bridge"));
    const std::size_t data = request.open(IFLA_INFO_DATA);
    // No multicast queries of the bridge's own: the only traffic is the nodes'.
    request.put(IFLA_BR_MCAST_SNOOPING, std::uint8_t{0});
    request.close(data);
    request.close(info);
    return ask(request);
  }
  // A veth pair: `name` here and a port of `master`, `peer` in the namespace `peer_netns`.
  [[nodiscard]] int add_veth(const std::string& name, int master, const std::string& peer, int peer_netns) {
    Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    auto* link = request.body<ifinfomsg>();
    link->ifi_flags = link->ifi_change = IFF_UP;
    request.put(IFLA_IFNAME, name);
    request.put(IFLA_MASTER, static_cast<std::uint32_t>(master));
    const std::size_t info = request.open(IFLA_LINKINFO);
    request.put(IFLA_INFO_KIND, std::string("veth"));
    const std::size_t data = request.open(IFLA_INFO_DATA);
    const std::size_t pair = request.open(VETH_INFO_PEER);
    request.body<ifinfomsg>();
    request.put(IFLA_IFNAME, peer);
    request.put(IFLA_NET_NS_FD, static_cast<std::uint32_t>(peer_netns));
    request.close(pair);
    request.close(data);
    request.close(info);
    return ask(request);
  }
  [[nodiscard]] int add_default_route(const LinkAddress& gateway) {
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

 private:
  Fd fd_;
};

// The folder of named namespaces, a shared mount as `ip netns` makes it: without that a name
// removed here would live on in other mount namespaces and keep the namespace alive.
Result<void> prepare_netns_folder() {
  if (::mkdir(kNetnsFolder, 0755) != 0 && errno != EEXIST)
    return environment(fmt::format("make {}", kNetnsFolder), errno);
  Fd folder(::open(kNetnsFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return environment(fmt::format("open {}", kNetnsFolder), errno);
  if (::flock(folder.get(), LOCK_EX) != 0) return environment(fmt::format("lock {}", kNetnsFolder), errno);
  if (::mount("", kNetnsFolder, "none", MS_SHARED | MS_REC, nullptr) == 0) return {};
  if (errno != EINVAL) return environment(fmt::format("share the mounts in {}", kNetnsFolder), errno);
  if (::mount(kNetnsFolder, kNetnsFolder, "none", MS_BIND | MS_REC, nullptr) != 0 ||
      ::mount("", kNetnsFolder, "none", MS_SHARED | MS_REC, nullptr) != 0)
    return environment(fmt::format("mount {}", kNetnsFolder), errno);
  return {};
}

// Without link-local addresses there is no IPv6 chatter on the links; configured addresses and ::1
// work as ever. The kernel resolves this path by the calling thread's namespace.
void calm_ipv6() {
  Fd fd(::open("/proc/sys/net/ipv6/conf/default/addr_gen_mode", O_WRONLY | O_CLOEXEC));
  if (fd) [[maybe_unused]] const ssize_t n = ::write(fd.get(), "1", 1);
}

}  // namespace

void in_netns(int netns_fd, const std::function<void()>& work) {
  if (netns_fd < 0) {
    work();
    return;
  }
  std::thread([&] {
    if (::setns(netns_fd, CLONE_NEWNET) != 0) {
      log::warning("cannot enter a network namespace of the deployment: {}", std::strerror(errno));
      return;
    }
    work();
  }).join();
}

Result<Fd> make_netns(const std::string& name) {
  ROSE_CHECK(prepare_netns_folder());
  const std::string path = fmt::format("{}/{}", kNetnsFolder, name);
  { Fd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0));
    if (!file) return environment(fmt::format("make {}", path), errno); }
  Result<Fd> made = fail(ErrorKind::bug, "no namespace");
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      made = environment("make a network namespace", errno);
      return;
    }
    calm_ipv6();
    Netlink netlink;
    if (const int err = netlink.up(1); err != 0) {
      made = environment("set lo up in a new network namespace", err);
      return;
    }
    Fd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!fd || ::mount("/proc/thread-self/ns/net", path.c_str(), "none", MS_BIND, nullptr) != 0) {
      made = environment(fmt::format("name a network namespace {}", path), errno);
      return;
    }
    made = std::move(fd);
  }).join();
  if (!made) ::unlink(path.c_str());
  return made;
}

Result<void> remove_netns(const std::string& name) {
  const std::string path = fmt::format("{}/{}", kNetnsFolder, name);
  // Once for each mount on it; EINVAL: none is left.
  while (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return fail_errno(ErrorKind::environment, fmt::format("cannot remove network namespace {}", path), errno);
  return {};
}

std::vector<std::string> port_names(const std::vector<std::string>& nodes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::string name = "rose-" + nodes[i];
    if (name.size() >= IFNAMSIZ) {
      name = fmt::format("rose-p{}", i);
      // A node may be called "p0" itself.
      if (std::find(nodes.begin(), nodes.end(), name.substr(5)) != nodes.end()) name = fmt::format("rose-_p{}", i);
    }
    names.push_back(std::move(name));
  }
  return names;
}

Result<std::unique_ptr<Network>> Network::create(const std::string& client_netns, const std::string& client_ip,
                                                 int prefix, const std::vector<Member>& members) {
  std::unique_ptr<Network> network(new Network);
  ROSE_TRY(const LinkAddress client_address, link_address(client_ip));
  network->names_.push_back(client_netns);
  ROSE_TRY(network->client_, make_netns(client_netns));
  for (const Member& member : members) {
    network->names_.push_back(member.netns);
    ROSE_TRY(Fd fd, make_netns(member.netns));
    network->nodes_.push_back(std::move(fd));
  }

  Result<void> outcome;
  in_netns(network->client_.get(), [&] {
    outcome = [&]() -> Result<void> {
      Netlink netlink;
      if (const int err = netlink.add_bridge(kBridge); err != 0)
        return environment(fmt::format("make bridge {}", kBridge), err);
      const int bridge = static_cast<int>(::if_nametoindex(kBridge));
      if (const int err = netlink.add_address(bridge, client_address, prefix); err != 0)
        return environment(fmt::format("give {} the address {}", kBridge, client_ip), err);
      for (std::size_t i = 0; i < members.size(); ++i)
        if (const int err = netlink.add_veth(members[i].port, bridge, kNodeLink, network->nodes_[i].get()); err != 0)
          return environment(fmt::format("make veth {}", members[i].port), err);
      return {};
    }();
  });
  if (!outcome) return Unexpected(std::move(outcome).error());

  for (std::size_t i = 0; i < members.size(); ++i) {
    ROSE_TRY(const LinkAddress address, link_address(members[i].ip));
    in_netns(network->nodes_[i].get(), [&] {
      outcome = [&]() -> Result<void> {
        Netlink netlink;
        const int link = static_cast<int>(::if_nametoindex(kNodeLink));
        // A link that an incident takes down and up again must come back with its address, as IPv4's does.
        if (address.family == AF_INET6)
          ROSE_CHECK(write_control(fmt::format("/proc/sys/net/ipv6/conf/{}/keep_addr_on_down", kNodeLink), "1"));
        if (const int err = netlink.add_address(link, address, prefix); err != 0)
          return environment(fmt::format("give {} the address {}/{}", members[i].netns, members[i].ip, prefix), err);
        if (const int err = netlink.up(link); err != 0)
          return environment(fmt::format("set {} up in {}", kNodeLink, members[i].netns), err);
        // A node with the other address family has no use for this route.
        if (address.family == client_address.family)
          if (const int err = netlink.add_default_route(client_address); err != 0)
            return environment(fmt::format("add a default route in {}", members[i].netns), err);
        return {};
      }();
    });
    if (!outcome) return Unexpected(std::move(outcome).error());
  }
  return network;
}

Result<void> Network::remove() {
  nodes_.clear();
  client_.reset();
  Result<void> first;
  for (const std::string& name : names_)
    if (auto removed = remove_netns(name); !removed && first) first = std::move(removed);
  names_.clear();
  return first;
}

Network::~Network() {
  if (auto removed = remove(); !removed) log::warning(removed.error().message);
}

}  // namespace rose::deploy
