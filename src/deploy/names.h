// The names of a run: its nodes and the commands beside them find each other by name, as containers of one network do.
// Containers get a hosts file each. Processes of this machine get a mount namespace of the run, in which /etc/hosts and
// /etc/resolv.conf are the run's, so that no name of this machine leads a node to itself.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"

namespace rose::deploy {

struct HostLine {
  std::string address;
  std::vector<std::string> names;  // the first one is what `hostname -f` prints
};

// What is in the run: a line for each node, with its names in the order of their weight. A host name that another node
// has as its name, service or alias is that one's alone.
[[nodiscard]] std::vector<HostLine> run_names(const config::Config& config, const std::vector<NodeInfo>& nodes);

// The hosts file of the container `node`: its own line first, then the others', then `extra_hosts` of its service and
// the names by which engines call the machine, which is the client here.
[[nodiscard]] std::string container_hosts(const config::Config& config, const std::vector<NodeInfo>& nodes,
                                          std::size_t node);

// The hosts file of processes of this machine. `machine`: its own file, for its host name, and in host networks for
// its other names, which the run's do not hide.
[[nodiscard]] std::string process_hosts(const config::Config& config, const std::vector<NodeInfo>& nodes,
                                        const std::string& machine, const std::string& hostname);

// In a network of the run no name server answers. Resolvers then ask this machine at once, where none listens.
inline constexpr const char* kNoNameServer = "# Names of this run are in /etc/hosts; it has no name server.\n";

// The run's folder as a mount of its own that namespaces share: what is mounted in it, by rose or by a command, is
// mounted for all. Unmounted with `leave_shared`.
[[nodiscard]] Result<void> share_folder(const std::filesystem::path& folder);
// Unmounts it together with what is still mounted in it. Succeeds when it is no mount.
[[nodiscard]] Result<void> leave_shared(const std::filesystem::path& folder);

// A mount namespace in which `hosts`, a file, is /etc/hosts, and `resolver`, unless empty, /etc/resolv.conf. It lasts
// as long as the descriptor and the processes in it.
[[nodiscard]] Result<Fd> make_names(const std::filesystem::path& hosts, const std::filesystem::path& resolver);

}  // namespace rose::deploy
