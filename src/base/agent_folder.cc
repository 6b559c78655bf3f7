#include "base/agent_folder.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <optional>

#include "base/folder.h"

namespace rose {

Result<void> check_loadable(const std::filesystem::path& run_dir, std::string_view loader) {
  struct statvfs system{};
  if (::statvfs(run_dir.c_str(), &system) != 0 || (system.f_flag & ST_NOEXEC) == 0) return {};
  return fail(
      ErrorKind::environment,
      fmt::format("{} cannot load rose's agent from {}: its file system is mounted noexec", loader, run_dir.string()),
      "set TMPDIR to a folder on another file system");
}

Result<void> make_notes_folder(const std::filesystem::path& run_dir, const std::filesystem::path& folder,
                               const std::string& node) {
  std::optional<Owner> owner;
  if (const Result<OpenFolder> own = OpenFolder::open(run_dir / node)) {
    ROSE_TRY(const struct stat status, own->status());
    if (status.st_uid != 0) owner = Owner{status.st_uid, status.st_gid};
  }
  ROSE_TRY(const OpenFolder above, OpenFolder::open(folder));
  ROSE_TRY([[maybe_unused]] const OpenFolder made, above.make(node, owner, 0700));
  return {};
}

}  // namespace rose
