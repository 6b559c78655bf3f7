#include "kernel/cgroup2.h"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <fstream>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace rose::kernel {
namespace {

constexpr long kCgroup2Magic = 0x63677270;
constexpr std::uint64_t kTopId = 1;  // inode number of the hierarchy's root folder
constexpr const char* kMountIt =
    "mount cgroup v2: mount -t cgroup2 none /sys/fs/cgroup (or /sys/fs/cgroup/unified beside v1)";

// True if this process is in the initial cgroup namespace. Only there, /proc gives the paths of cgroups relative to the
// root of the hierarchy.
bool whole_names() {
  std::error_code bad;
  return std::filesystem::read_symlink("/proc/self/ns/cgroup", bad) == "cgroup:[4026531835]";
}

struct Mount {
  std::filesystem::path point;
  std::filesystem::path root;  // the part of the hierarchy that is mounted there
};

// The kernel writes spaces, line breaks and backslashes in paths as \040 and similar.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<Mount> cgroup2_mounts() {
  std::vector<Mount> mounts;
  std::ifstream file("/proc/self/mountinfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto type = line.find(" - cgroup2 ");
    if (type == std::string::npos) continue;
    const auto words = split(std::string_view(line).substr(0, type), ' ');
    if (words.size() >= 5) mounts.push_back({unescaped(words[4]), unescaped(words[3])});
  }
  return mounts;
}

std::uint32_t depth(const std::filesystem::path& path) {
  std::uint32_t parts = 0;
  for (const auto& part : path) {
    if (part != "/" && part != "." && !part.empty()) ++parts;
  }
  return parts;
}

}  // namespace

Result<std::filesystem::path> cgroup2_mount() {
  const auto mounts = cgroup2_mounts();
  if (mounts.empty()) return fail(ErrorKind::environment, "cgroup v2 is not mounted", kMountIt);
  return mounts.front().point;
}

bool cgroup1_mounted() {
  std::ifstream file("/proc/self/mountinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.find(" - cgroup ") != std::string::npos) return true;
  }
  return false;
}

std::filesystem::path cgroup_folder_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::/")) continue;
    for (const auto& mount : cgroup2_mounts()) {
      const auto relative = std::filesystem::path(line.substr(3)).lexically_relative(mount.root);
      if (relative.empty() || *relative.begin() == "..") continue;
      return relative == "." ? mount.point : mount.point / relative;
    }
  }
  return {};
}

std::uint64_t cgroup_id(const std::filesystem::path& folder) {
  struct stat status{};
  return ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) ? status.st_ino : 0;
}

Result<Cgroup> find_cgroup(const std::filesystem::path& folder) {
  // If the folder does not exist yet, resolve its existing part: units and containers create their folders on start.
  std::filesystem::path there = std::filesystem::absolute(folder).lexically_normal(), rest;
  if (!there.has_filename()) there = there.parent_path();
  while (cgroup_id(there) == 0 && there.has_relative_path()) {
    rest = rest.empty() ? there.filename() : there.filename() / rest;
    there = there.parent_path();
  }
  std::error_code bad;
  const auto known = std::filesystem::canonical(there, bad);
  if (bad) {
    return fail(ErrorKind::input, fmt::format("cgroup '{}': {}", folder.string(), bad.message()),
                "give the full path of a cgroup v2 folder, e.g. /sys/fs/cgroup/system.slice/x.service");
  }
  struct statfs fs{};
  if (::statfs(known.c_str(), &fs) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cgroup '{}'", folder.string()), errno);
  if (fs.f_type != kCgroup2Magic) {
    return fail(
        ErrorKind::input,
        rest.empty() ? fmt::format("'{}' is not a cgroup v2 folder", folder.string())
                     : fmt::format("cgroup '{}' does not exist", folder.string()),
        "give a cgroup v2 folder; v2 is mounted at /sys/fs/cgroup, or at /sys/fs/cgroup/unified in the hybrid layout");
  }
  Cgroup cgroup;
  cgroup.path = rest.empty() ? known : known / rest;
  cgroup.id = cgroup_id(cgroup.path);
  std::size_t longest = 0;
  for (const auto& mount : cgroup2_mounts()) {
    const auto relative = cgroup.path.lexically_relative(mount.point);
    if (relative.empty() || *relative.begin() == "..") continue;
    if (mount.point.native().size() < longest) continue;
    longest = mount.point.native().size();
    // Compare inode numbers to find out whether the mount shows the whole hierarchy or only a part of it. In a cgroup
    // namespace, mountinfo cannot show this, because it gives the mount's root relative to the namespace. The
    // hierarchy's real root, however, always has the inode number kTopId.
    std::filesystem::path name = "/";
    if (cgroup_id(mount.point) != kTopId) {
      if (!whole_names()) {
        return fail(ErrorKind::environment,
                    fmt::format("cgroup '{}': only a part of the machine's cgroups is visible here", folder.string()),
                    "give this container the host's cgroups: --cgroupns=host, or mount the host's /sys/fs/cgroup");
      }
      name = mount.root;
    }
    if (relative != ".") name /= relative;
    cgroup.name = name.lexically_normal().string();
    cgroup.level = depth(name);
  }
  return cgroup;
}

Result<Cgroup> cgroup_of(pid_t pid) {
  const auto folder = cgroup_folder_of(pid);
  if (folder.empty()) {
    return fail(ErrorKind::environment, fmt::format("process {} has no cgroup v2 that is visible here", pid), kMountIt);
  }
  return find_cgroup(folder);
}

}  // namespace rose::kernel
