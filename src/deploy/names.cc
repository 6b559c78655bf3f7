#include "deploy/names.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "base/folder.h"
#include "base/text.h"
#include "base/thread.h"
#include "deploy/environment.h"
#include "deploy/name_server.h"
#include "deploy/volumes.h"

namespace rose::deploy {
namespace {

void add(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// The host names of a container. As with container engines, "box.example.org" is also known as "box".
std::vector<std::string> host_names(const config::Container& container) {
  std::vector<std::string> names;
  const std::string& host = container.hostname;
  if (!container.domain.empty() && !host.empty()) add(names, fmt::format("{}.{}", host, container.domain));
  add(names, host);
  if (const std::size_t dot = host.find('.'); dot != std::string::npos && dot > 0) add(names, host.substr(0, dot));
  return names;
}

std::string text_of(const std::vector<HostLine>& lines) {
  std::string text;
  for (const HostLine& line : lines)
    if (!line.names.empty()) text += fmt::format("{}\t{}\n", line.address, fmt::join(line.names, " "));
  return text;
}

const std::vector<HostLine> kLocal = {{"127.0.0.1", {"localhost"}}, {"::1", {"localhost", "ip6-localhost"}}};

bool has(const std::vector<HostLine>& lines, const std::string& name) {
  return std::any_of(lines.begin(), lines.end(), [&](const HostLine& line) {
    return std::find(line.names.begin(), line.names.end(), name) != line.names.end();
  });
}

Unexpected cannot_do(std::string_view what) {
  return fail_errno(ErrorKind::environment, fmt::format("cannot {}", what), errno);
}

}  // namespace

std::vector<HostLine> run_names(const config::Config& config, const std::vector<NodeInfo>& nodes) {
  std::set<std::string> chosen;  // names that the configuration assigns
  for (const NodeInfo& info : nodes) {
    chosen.insert(info.name);
    if (const auto& container = config.nodes[info.index].container)
      chosen.insert(container->aliases.begin(), container->aliases.end());
  }
  std::vector<HostLine> lines;
  for (const NodeInfo& info : nodes) {
    HostLine line{reachable_ip(info), {}};
    add(line.names, info.name);
    if (const auto& container = config.nodes[info.index].container) {
      for (const std::string& alias : container->aliases) add(line.names, alias);
      for (const std::string& name : host_names(*container))
        if (!chosen.contains(name)) add(line.names, name);
    }
    lines.push_back(std::move(line));
  }
  // There is one line for each address. The names of nodes that share a network are appended to the owner's line.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t owner = config.network_owner(nodes[i].index);
    if (owner == nodes[i].index) continue;
    const auto at = std::find_if(nodes.begin(), nodes.end(), [&](const NodeInfo& one) { return one.index == owner; });
    if (at == nodes.end()) continue;
    for (const std::string& name : std::exchange(lines[i].names, {}))
      add(lines[static_cast<std::size_t>(at - nodes.begin())].names, name);
  }
  return lines;
}

std::string container_hosts(const config::Config& config, const std::vector<NodeInfo>& nodes, std::size_t node) {
  node = config.network_owner(node);  // as with container engines, nodes that share a network share this file
  const config::Container& container = *config.nodes[node].container;
  std::vector<HostLine> lines = kLocal;
  std::vector<HostLine> others = run_names(config, nodes);
  HostLine own{reachable_ip(nodes[node]), host_names(container)};
  // If there is no domain, an alias that consists of the host name and a domain is the full name, as for a pod.
  const std::string host = container.hostname.empty() ? config.nodes[node].name : container.hostname;
  if (container.domain.empty())
    for (const std::string& alias : container.aliases)
      if (alias.starts_with(host + ".")) {
        own.names.insert(own.names.begin(), alias);
        add(own.names, host);
        break;
      }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].index == node)
      for (const std::string& name : others[i].names) add(own.names, name);
  lines.push_back(std::move(own));
  // The service's own entries come first, so they override the names of other nodes.
  const std::string client = config::client_address(config.deployment);
  const std::string machine = config.deployment.network == config::Network::host ? "127.0.0.1" : client;
  for (const auto& [name, address] : container.hosts)
    lines.push_back({address == config::kHostGateway ? machine : address, {name}});
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].index != node) lines.push_back(std::move(others[i]));
  HostLine gateway{machine, {}};
  for (const char* name : {"host.docker.internal", "host.containers.internal", "gateway.docker.internal"})
    if (!has(lines, name)) gateway.names.emplace_back(name);
  lines.push_back(std::move(gateway));
  return text_of(lines);
}

std::string process_hosts(const config::Config& config, const std::vector<NodeInfo>& nodes, const std::string& machine,
                          const std::string& hostname) {
  const bool host_network = config.deployment.network == config::Network::host;
  std::vector<HostLine> lines = kLocal;
  for (HostLine& line : run_names(config, nodes)) lines.push_back(std::move(line));
  const std::vector<HostLine> known = lines;
  // Programs look up the name of their machine (a JVM calls it the local host). The machine's entry for this name is
  // kept only if its address begins with 127, because other addresses of the machine do not exist in the run's network.
  // In a host network, all entries are kept, except names of the run.
  bool own = has(known, hostname) || hostname.empty();
  for (HostLine& line : read_hosts(machine)) {
    const bool names_it = std::find(line.names.begin(), line.names.end(), hostname) != line.names.end();
    if (!host_network && !(names_it && line.address.starts_with("127."))) continue;
    if (!host_network) line.names = {hostname};
    std::erase_if(line.names, [&](const std::string& name) { return has(known, name); });
    own = own || has({line}, hostname);
    lines.push_back(std::move(line));
  }
  if (!own) lines.push_back({"127.0.1.1", {hostname}});
  return text_of(lines);
}

std::string resolver_text(bool served, const std::vector<std::string>& others) {
  if (!served && others.empty()) return kNoNameServer;
  std::string text;
  if (served) text += fmt::format("nameserver {}\n", kNameServer);
  for (const std::string& other : others) text += fmt::format("nameserver {}\n", other);
  return text + "options ndots:0\n";
}

Result<void> share_folder(const std::filesystem::path& folder) {
  ROSE_TRY(const OpenFolder open, OpenFolder::open(folder));
  const Fd tree(
      static_cast<int>(::syscall(SYS_open_tree, open.fd(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!tree) return cannot_do(fmt::format("make {} a mount of its own", folder.string()));
  ROSE_CHECK(volume::attach(tree.get(), open.fd()));
  if (::mount(nullptr, own_path(tree.get()).c_str(), nullptr, MS_SHARED, nullptr) == 0) return {};
  const int err = errno;
  (void)volume::detach(tree.get());
  errno = err;
  return cannot_do(fmt::format("share what is mounted in {}", folder.string()));
}

Result<void> leave_shared(const std::filesystem::path& folder) {
  std::error_code gone;
  if (!std::filesystem::exists(folder, gone)) return {};
  ROSE_TRY(const OpenFolder open, OpenFolder::open(folder));
  // EINVAL: it is not mounted, or not any more.
  if (::umount2(own_path(open.fd()).c_str(), MNT_DETACH) == 0 || errno == EINVAL) return {};
  return cannot_do(fmt::format("unmount {}", folder.string()));
}

Result<Fd> make_names(const std::filesystem::path& hosts, const std::filesystem::path& resolver) {
  struct Place {
    std::filesystem::path file, at, mount;
  };
  std::vector<Place> places;
  for (const auto& [file, at] : {std::pair(hosts, "/etc/hosts"), std::pair(resolver, "/etc/resolv.conf")}) {
    if (file.empty()) continue;
    // The file is often a link into /run, so the file must be mounted at the link's target.
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(at, error);
    if (error && file == resolver) continue;
    if (error) return fail(ErrorKind::environment, fmt::format("cannot replace {}: {}", at, error.message()));
    ROSE_TRY(std::filesystem::path mount, volume::mount_point(real));
    places.push_back({file, real, std::move(mount)});
  }
  Result<Fd> made = fail(ErrorKind::bug, "no namespace");
  ROSE_TRY(std::thread inside, start_thread([&] {
             made = [&]() -> Result<Fd> {
               if (::unshare(CLONE_NEWNS) != 0) return cannot_do("create a mount namespace");
               for (const Place& place : places) {
                 // A mount at this place must not appear in the machine's own namespace. Other mounts stay shared.
                 if (::mount(nullptr, place.mount.c_str(), nullptr, MS_SLAVE, nullptr) != 0)
                   return cannot_do(fmt::format("keep what is mounted in {} in a namespace", place.mount.string()));
               }
               for (const Place& place : places)
                 if (::mount(place.file.c_str(), place.at.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
                     ::mount(nullptr, place.at.c_str(), nullptr, MS_PRIVATE, nullptr) != 0)
                   return cannot_do(fmt::format("mount {} at {}", place.file.string(), place.at.string()));
               Fd fd(::open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC));
               // Enter the namespace as each process will, because entering needs more rights than creating.
               if (!fd || ::setns(fd.get(), CLONE_NEWNS) != 0) return cannot_do("enter a mount namespace");
               return fd;
             }();
           }));
  inside.join();
  return made;
}

}  // namespace rose::deploy
