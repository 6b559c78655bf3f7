#include "deploy/network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/address.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "deploy/deployment.h"
#include "kernel/netlink.h"

namespace rose::deploy {
namespace {

constexpr const char* kNeeded =
    "run as root on a kernel with network namespaces, bridge and veth; in a container, with --privileged; "
    "or use [deployment] network = \"host\"";

constexpr std::uint16_t kNameServerPort = 53;
constexpr std::int64_t kLockPatience = 5 * kSecond;

Unexpected environment(std::string_view what, int err) {
  return fail(ErrorKind::environment, fmt::format("cannot {}: {}", what, std::strerror(err)), kNeeded);
}

Result<Address> address_of(const std::string& text) {
  if (const auto address = parse_address(text)) return *address;
  return fail(ErrorKind::input, fmt::format("'{}' is not an IP address", text));
}

// Prepares the folder of named namespaces. It must be a shared mount, as `ip netns` creates it. Otherwise, a name that
// is removed here would remain in other mount namespaces and keep the network namespace alive.
Result<void> prepare_netns_folder() {
  if (::mkdir(kNetnsFolder, 0755) != 0 && errno != EEXIST)
    return environment(fmt::format("make {}", kNetnsFolder), errno);
  // In the usual case the folder is a mount already. Then the lock is not needed. It is not taken either, because any
  // user who can open the folder could hold it and thereby delay rose.
  if (::mount("", kNetnsFolder, "none", MS_SHARED | MS_REC, nullptr) == 0) return {};
  Fd folder(::open(kNetnsFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return environment(fmt::format("open {}", kNetnsFolder), errno);
  for (const std::int64_t limit = monotonic_ns() + kLockPatience; ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0;
       ::usleep(10'000))
    if (errno != EWOULDBLOCK || monotonic_ns() > limit) return environment(fmt::format("lock {}", kNetnsFolder), errno);
  if (::mount("", kNetnsFolder, "none", MS_SHARED | MS_REC, nullptr) == 0) return {};
  if (errno != EINVAL) return environment(fmt::format("make the mounts in {} shared", kNetnsFolder), errno);
  if (::mount(kNetnsFolder, kNetnsFolder, "none", MS_BIND | MS_REC, nullptr) != 0 ||
      ::mount("", kNetnsFolder, "none", MS_SHARED | MS_REC, nullptr) != 0)
    return environment(fmt::format("mount {}", kNetnsFolder), errno);
  return {};
}

// Disables link-local addresses, so that there is no IPv6 background traffic on the links. Configured addresses and ::1
// still work. The setting is that of the calling thread's namespace.
void calm_ipv6() {
  Fd fd(::open("/proc/sys/net/ipv6/conf/default/addr_gen_mode", O_WRONLY | O_CLOEXEC));
  if (fd) [[maybe_unused]]
    const ssize_t n = ::write(fd.get(), "1", 1);
}

// Sets the values that Docker has set since version 20.10. Images rely on them: for example, HAProxy's official image
// listens at port 80 without being root.
Result<void> open_to_users() {
  ROSE_CHECK(write_control("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"));
  return write_control("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
}

}  // namespace

void in_netns(int netns_fd, const std::function<void()>& work) {
  if (netns_fd < 0) {
    work();
    return;
  }
  auto inside = start_thread([&] {
    if (::setns(netns_fd, CLONE_NEWNET) != 0) {
      log::warning("cannot enter a network namespace of the deployment: {}", std::strerror(errno));
      return;
    }
    work();
  });
  if (inside) inside->join();
  else log::warning("cannot enter a network namespace of the deployment: {}", inside.error().message);
}

Result<Fd> make_netns(const std::string& name) {
  ROSE_CHECK(prepare_netns_folder());
  const std::string path = fmt::format("{}/{}", kNetnsFolder, name);
  {
    Fd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0));
    if (!file) return environment(fmt::format("make {}", path), errno);
  }
  Result<Fd> made = fail(ErrorKind::bug, "no namespace");
  auto inside = start_thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      made = environment("create a network namespace", errno);
      return;
    }
    calm_ipv6();
    kernel::Netlink netlink;
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
  });
  if (inside) inside->join();
  else made = Unexpected(std::move(inside).error());
  if (!made) ::unlink(path.c_str());
  return made;
}

Result<Fd> adopt_netns(const std::string& name, pid_t holder) {
  ROSE_CHECK(prepare_netns_folder());
  const std::string path = fmt::format("{}/{}", kNetnsFolder, name);
  {
    Fd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0));
    if (!file) return environment(fmt::format("make {}", path), errno);
  }
  const std::string theirs = fmt::format("/proc/{}/ns/net", holder);
  Fd fd(::open(theirs.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::mount(theirs.c_str(), path.c_str(), "none", MS_BIND, nullptr) != 0) {
    const int err = errno;
    ::unlink(path.c_str());
    return environment(fmt::format("name the network namespace of process {} {}", holder, path), err);
  }
  in_netns(fd.get(), calm_ipv6);
  return fd;
}

Result<void> remove_netns(const std::string& name) {
  const std::string path = fmt::format("{}/{}", kNetnsFolder, name);
  // Repeat for each mount on the name; EINVAL means that none is left.
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
      // Avoids the name of a node that is itself called "p0".
      if (std::find(nodes.begin(), nodes.end(), name.substr(5)) != nodes.end()) name = fmt::format("rose-_p{}", i);
    }
    names.push_back(std::move(name));
  }
  return names;
}

Result<std::unique_ptr<Network>> Network::create(const std::string& client_netns, const std::string& client_ip,
                                                 int prefix, const std::vector<Member>& members) {
  std::unique_ptr<Network> network(new Network);
  ROSE_TRY(const Address client_address, address_of(client_ip));
  network->names_.push_back(client_netns);
  ROSE_TRY(network->client_, make_netns(client_netns));
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    network->of_.push_back(member.of.value_or(i));
    if (member.of) {
      network->nodes_.emplace_back();
      continue;
    }
    network->names_.push_back(member.netns);
    ROSE_TRY(Fd fd, member.holder > 0 ? adopt_netns(member.netns, member.holder) : make_netns(member.netns));
    network->nodes_.push_back(std::move(fd));
  }

  Result<void> outcome;
  in_netns(network->client_.get(), [&] {
    outcome = [&]() -> Result<void> {
      kernel::Netlink netlink;
      if (const int err = netlink.add_bridge(kBridge); err != 0)
        return environment(fmt::format("make bridge {}", kBridge), err);
      const int bridge = static_cast<int>(::if_nametoindex(kBridge));
      if (const int err = netlink.add_address(bridge, client_address, prefix); err != 0)
        return environment(fmt::format("give {} the address {}", kBridge, client_ip), err);
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (members[i].of) continue;
        if (const int err = netlink.add_veth(members[i].port, bridge, kNodeLink, network->nodes_[i].get()); err != 0)
          return environment(fmt::format("make veth {}", members[i].port), err);
      }
      return {};
    }();
  });
  if (!outcome) return Unexpected(std::move(outcome).error());

  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].of) continue;
    ROSE_TRY(const Address address, address_of(members[i].ip));
    in_netns(network->nodes_[i].get(), [&] {
      outcome = [&]() -> Result<void> {
        if (members[i].container)
          if (auto opened = open_to_users(); !opened) log::debug("{}", opened.error().message);
        kernel::Netlink netlink;
        const int link = static_cast<int>(::if_nametoindex(kNodeLink));
        // If an incident takes a link down and up again, it must keep its address, as it does with IPv4.
        if (!address.is_ipv4())
          ROSE_CHECK(write_control(fmt::format("/proc/sys/net/ipv6/conf/{}/keep_addr_on_down", kNodeLink), "1"));
        if (const int err = netlink.add_address(link, address, prefix); err != 0)
          return environment(fmt::format("give {} the address {}/{}", members[i].netns, members[i].ip, prefix), err);
        if (const int err = netlink.up(link); err != 0)
          return environment(fmt::format("set {} up in {}", kNodeLink, members[i].netns), err);
        // A node with the other address family cannot use this route.
        if (address.is_ipv4() == client_address.is_ipv4())
          if (const int err = netlink.add_default_route(client_address); err != 0)
            return environment(fmt::format("add a default route in {}", members[i].netns), err);
        // The deployment has no connection to the outside, so a name server there would never answer. Each name lookup
        // (JVMs make several when they start) would then wait for ten seconds. This rule makes lookups fail at once. On
        // a kernel without rules for routes, lookups still wait.
        if (const int err =
                netlink.prohibit_port_by_default_route(address.is_ipv4() ? AF_INET : AF_INET6, kNameServerPort);
            err != 0)
          log::debug("name lookups will time out slowly in {}: {}", members[i].netns, std::strerror(err));
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
