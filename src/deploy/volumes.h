// File systems of a run's own in nodes' folders, so that one of them can be full while the machine's are not. They are
// made, changed and unmounted by descriptors and by the kernel's numbers of mounts: a node may rename what leads to
// one. Their source is the deployment's id, by which heal() finds them wherever they are.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/folder.h"
#include "base/result.h"

namespace rose::deploy {

// A tmpfs.
class Volume {
 public:
  // Over an empty folder, with its owner and mode. `options`: further ones of tmpfs(5), "size=64m,mode=0700"; they
  // count more.
  [[nodiscard]] static Result<Volume> make(const OpenFolder& at, const std::string& id,
                                           const std::string& options = {});

  // Where it was made.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  struct Room {
    std::uint64_t bytes = 0;  // of the whole
    std::uint64_t used = 0;
  };
  [[nodiscard]] Result<Room> room() const;
  // Made no larger than what it holds, down to a page. All writers get ENOSPC, root too. Verified.
  [[nodiscard]] Result<Room> fill() const;
  [[nodiscard]] Result<void> resize(std::uint64_t bytes) const;
  // The device of the file system, as in stat(2).
  [[nodiscard]] Result<dev_t> device() const;
  // Its top. The size cannot be changed any more; the memory is held as long as the result is.
  [[nodiscard]] OpenFolder release();

 private:
  Volume() = default;
  std::filesystem::path folder_;
  Fd mount_;
};

namespace volume {

// A file system that is not in the tree of files yet. `source`: of mount(8); `options`: separated by commas.
[[nodiscard]] Result<Fd> make_detached(const std::string& type, const std::string& source, const std::string& options);
// Marks a folder on which a file system of this deployment will be mounted, so that dissolve() does not mistake another
// folder for it that a user has put in its place. An error if the file system does not support such marks and the
// folder belongs to another user.
[[nodiscard]] Result<void> mark(const OpenFolder& folder, const std::string& id);
// On the folder or file that `at` is open on, whatever its name is by now.
[[nodiscard]] Result<void> attach(int mount, int at);
// Unmounts it together with all that is mounted in it. Processes that have files of it open keep them.
[[nodiscard]] Result<void> detach(int mount);

// Where the file system that holds `path` is mounted.
[[nodiscard]] Result<std::filesystem::path> mount_point(const std::filesystem::path& path);

// Volumes and disks (deploy/disk.h) of a deployment that are mounted, inner ones first.
struct Mounted {
  std::uint64_t number = 0;     // the kernel's, of the mount
  std::filesystem::path point;  // where it was when this was looked up
  std::string id;               // of the deployment
};
[[nodiscard]] std::vector<Mounted> of(const std::string& id);
// Puts plain files in a plain folder in its place, even if processes have some of them open, and removes the file
// system. After an error it may still be mounted.
enum class Dissolved {
  put_back,
  gone,       // unmounted by another process: the node's user can do that in a mount namespace without this mount
  exchanged,  // unmounted, but what was below it is no longer the marked folder
};
[[nodiscard]] Result<Dissolved> dissolve(const Mounted& mounted);
// For files that cannot go back where they were: copies what `top` holds to a new folder in `into`, which is made when
// it is not there and which only root may enter, and unmounts it. The new folder.
[[nodiscard]] Result<std::filesystem::path> rescue(const OpenFolder& top, const std::filesystem::path& into);
// True if the file system that this is in is still somewhere in the tree of files.
[[nodiscard]] bool is_mounted(const OpenFolder& top);
// The kernel's number of the mount that this is on.
[[nodiscard]] std::optional<std::uint64_t> number(const OpenFolder& folder);

}  // namespace volume
}  // namespace rose::deploy
