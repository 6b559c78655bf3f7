// Finds units, containers and pods by the cgroup folders that systemd, docker, podman, containerd, CRI-O and the
// kubelet create, with either of their cgroup drivers (systemd or cgroupfs). The command-line tools of these systems
// are used only as a last resort.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::deploy {

// The owner of a folder, determined from its path.
struct CgroupOwner {
  std::string id;  // of the container or pod, as its tools show it
  bool pod = false;
};
[[nodiscard]] std::optional<CgroupOwner> owner_of_cgroup(std::string_view path);
// The folder that an engine created for a container and that has the container's limits: `folder` or one of its parents
// up to `top`. "" if there is none.
[[nodiscard]] std::filesystem::path folder_of_container(const std::filesystem::path& folder,
                                                        const std::filesystem::path& top);

// What was found. If the folder is not known, or contains more than the main process, `pid` tells which process is
// meant.
struct Located {
  // for a unit that is not running: the folder it will have; "" if it has no folder of its own
  std::filesystem::path cgroup;
  pid_t pid = 0;
  CgroupOwner owner;  // if it belongs to a container or pod: the container or pod, with the full id
};

// `what`: a full id, a unique prefix of one, "pod:UID" for a whole pod, or a name known to docker, podman, nerdctl or
// crictl. Returns ErrorKind::inconclusive if it does not exist at the moment, or if several match, with the candidates.
[[nodiscard]] Result<Located> locate_container(const std::string& what, const std::filesystem::path& top);

// The owner's other names as "KEY:VALUE": its id and the names known to docker, podman, nerdctl or crictl:
// "container:1f0c...", "name:cache-1", "project:shop", "service:cache" (Compose), "pod:cache-0", "namespace:prod",
// "pod-uid:6f1d..." (Kubernetes). Labels longer than kLongestLabel are omitted.
inline constexpr std::size_t kLongestLabel = 256;
[[nodiscard]] std::vector<std::string> labels_of(const CgroupOwner& owner);

// Finds a systemd unit ("x", "x.service"). If systemd is not running, a cgroup folder with the unit's name is searched
// for.
[[nodiscard]] Result<Located> locate_unit(const std::string& unit, const std::filesystem::path& top);

// The path of a slice's folder: for "system-postgresql.slice", "system.slice/system-postgresql.slice".
[[nodiscard]] std::filesystem::path slice_path(std::string_view slice);

}  // namespace rose::deploy
