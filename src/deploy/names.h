// The names of a run: nodes and commands find each other by name, like containers on one network. Each container gets
// its own hosts file. Processes of this machine get a mount namespace of the run, in which /etc/hosts and
// /etc/resolv.conf are the run's. So the nodes' names lead to their addresses in the run, whatever this machine's own
// files say.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "deploy/dns/answer.h"

namespace rose::deploy {

// The hosts in the run: a line for each node, with its names, most important first. If a node's host name is also the
// name, service or alias of another node, it belongs only to that other node.
[[nodiscard]] std::vector<HostLine> run_names(const config::Config& config, const std::vector<NodeInfo>& nodes);

// The hosts file of the container `node`: its own line first, then `extra_hosts` of its service, the lines of the other
// nodes, and the names by which containers reach the machine (such as host.docker.internal). In a run, these names lead
// to the client.
[[nodiscard]] std::string container_hosts(const config::Config& config, const std::vector<NodeInfo>& nodes,
                                          std::size_t node);

// The hosts file of processes of this machine. `machine`: the content of the machine's own hosts file. It supplies the
// entry of the machine's host name, if its address begins with 127, and in host networks also every other name that is
// not a name of the run.
[[nodiscard]] std::string process_hosts(const config::Config& config, const std::vector<NodeInfo>& nodes,
                                        const std::string& machine, const std::string& hostname);

// The resolv.conf of processes of this machine. It names no server. Resolvers then ask 127.0.0.1, where no name server
// listens in the run's namespaces, and fail immediately instead of waiting for an answer.
inline constexpr const char* kNoNameServer = "# Names of this run are in /etc/hosts; it has no name server.\n";

// The resolv.conf of a container. `served`: the run's name server (deploy/name_server.h) answers in its network.
// `others`: the name servers that are asked about names that the run's name server does not know.
[[nodiscard]] std::string resolver_text(bool served, const std::vector<std::string>& others);

// Makes the run's folder a mount that is shared between namespaces: what rose or a command mounts in it is visible in
// all of them. leave_shared() undoes it.
[[nodiscard]] Result<void> share_folder(const std::filesystem::path& folder);
// Unmounts the folder together with everything mounted in it. Succeeds if it is not a mount.
[[nodiscard]] Result<void> leave_shared(const std::filesystem::path& folder);

// Creates a mount namespace in which the file `hosts` is /etc/hosts, and the file `resolver`, unless empty, is
// /etc/resolv.conf. The namespace exists as long as the descriptor or a process in it.
[[nodiscard]] Result<Fd> make_names(const std::filesystem::path& hosts, const std::filesystem::path& resolver);

}  // namespace rose::deploy
