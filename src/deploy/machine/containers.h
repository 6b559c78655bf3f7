// Units, containers and pods by the folders that systemd, docker, podman, containerd, CRI-O and the kubelet make for
// them in the cgroup hierarchy, whichever of both cgroup drivers they use. Asking their tools comes last.
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

// Whom a folder belongs to, told from its path below the hierarchy's top.
struct CgroupOwner {
  std::string id;  // of the container or pod, as its tools say it
  bool pod = false;
};
[[nodiscard]] std::optional<CgroupOwner> owner_of_cgroup(std::string_view path);
// The folder that an engine has made for a container, where its limits are: of `folder` and those above it, up to
// `top`. "": it is in none.
[[nodiscard]] std::filesystem::path folder_of_container(const std::filesystem::path& folder,
                                                        const std::filesystem::path& top);

// Its folder and, where the folder does not tell, its main process.
struct Located {
  std::filesystem::path cgroup;  // of a unit that does not run: where it will be; "" when it has none of its own
  pid_t pid = 0;
  CgroupOwner owner;  // of a container or pod: its full id
};

// `what`: a full id, the unique beginning of one, "pod:UID" for a whole pod, or a name that docker, podman, nerdctl or
// crictl knows. ErrorKind::inconclusive when it is not there (now), with the candidates when several fit.
[[nodiscard]] Result<Located> locate_container(const std::string& what, const std::filesystem::path& top);

// What else it is called, as "KEY:VALUE": its id, and the names that docker, podman, nerdctl or crictl know it by:
// "container:1f0c...", "name:cache-1", "project:shop", "service:cache" (Compose), "pod:cache-0", "namespace:prod",
// "pod-uid:6f1d..." (Kubernetes). Longer names are left out.
inline constexpr std::size_t kLongestLabel = 256;
[[nodiscard]] std::vector<std::string> labels_of(const CgroupOwner& owner);

// A systemd unit ("x", "x.service"). Without a running systemd, what the folders tell.
[[nodiscard]] Result<Located> locate_unit(const std::string& unit, const std::filesystem::path& top);

// "system-postgresql.slice" is at "system.slice/system-postgresql.slice".
[[nodiscard]] std::filesystem::path slice_path(std::string_view slice);

}  // namespace rose::deploy
