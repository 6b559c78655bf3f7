// File systems of a run's own in nodes' folders, so that one of them can be full while the machine's are not. They are
// made, changed and unmounted by descriptors and by the kernel's numbers of mounts: a node may rename what leads to
// one. Their source is the deployment's id, by which heal() finds them wherever they are.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
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
  // Made no larger than what it holds, down to a page; whoever writes gets ENOSPC, root too. Verified.
  [[nodiscard]] Result<Room> fill() const;
  [[nodiscard]] Result<void> resize(std::uint64_t bytes) const;
  // Of the file system, as in stat(2).
  [[nodiscard]] Result<dev_t> device() const;
  // Nobody changes its size any more: as long as it is held, its memory is.
  void release() { mount_.reset(); }

 private:
  Volume() = default;
  std::filesystem::path folder_;
  Fd mount_;
};

namespace volume {

// A file system that is not in the tree of files yet. `source`: of mount(8); `options`: separated by commas.
[[nodiscard]] Result<Fd> make_detached(const std::string& type, const std::string& source, const std::string& options);
// Marks a folder on which a file system of this deployment will be mounted, so that dissolve() does not take another
// one for it that somebody has put in its place. An error where the file system knows no such marks and the folder
// belongs to somebody else.
[[nodiscard]] Result<void> mark(const OpenFolder& folder, const std::string& id);
// On the folder or file that `at` is open on, whatever its name is by now.
[[nodiscard]] Result<void> attach(int mount, int at);
// With all that is mounted in it. What has files of it open keeps them.
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
// Plain files in a plain folder instead, whoever has some of them open; the file system goes. Nothing when it is gone.
// After an error it may still be mounted. Its files are lost, which is an error, where the folder is not the marked
// one.
[[nodiscard]] Result<void> dissolve(const Mounted& mounted);

}  // namespace volume
}  // namespace rose::deploy
