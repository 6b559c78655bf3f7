// Systems that rose did not start, found by pid file, cgroup, systemd unit or container: where
// their processes are.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/result.h"
#include "config/config.h"

namespace rose::deploy {

struct Attached {
  pid_t pid = 0;                 // its main process; 0 when only the cgroup is known
  std::filesystem::path cgroup;  // v2 folder of its own; empty when it shares the root's: then the pid's tree is meant
};

// Relative pid files start at `directory`; cgroups may be given as folders or relative to the cgroup v2 mount.
// ErrorKind::input when what is named does not exist, ErrorKind::environment when systemctl, docker and podman are missing.
[[nodiscard]] Result<Attached> resolve_attach(const config::Attach& attach, const std::filesystem::path& directory);

}  // namespace rose::deploy
