// Separate file systems in nodes' folders, so that one of them can be full while the machine's are not. They are
// created, changed and unmounted through descriptors and the kernel's mount numbers, because a node may rename folders
// on the path. Their source (see mount(8)) is the deployment's id, by which heal() finds them wherever they are.
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

// A tmpfs over a folder of a node.
class Volume {
 public:
  // Mounts over an empty folder, keeping owner and mode. `options`: further options of tmpfs(5), "size=64m,mode=0700",
  // which take precedence.
  [[nodiscard]] static Result<Volume> make(const OpenFolder& at, const std::string& id,
                                           const std::string& options = {});

  // The path at which it was created.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  struct Room {
    std::uint64_t bytes = 0;  // size of the file system
    std::uint64_t used = 0;
  };
  [[nodiscard]] Result<Room> room() const;
  // Shrinks it to its contents, rounded up to a page. All writers get ENOSPC, including root. The result is verified.
  [[nodiscard]] Result<Room> fill() const;
  [[nodiscard]] Result<void> resize(std::uint64_t bytes) const;
  // The device of the file system, as in stat(2).
  [[nodiscard]] Result<dev_t> device() const;
  // The tmpfs file systems that somebody else (for example `setup`) has mounted over this one or in it. They hide files
  // of this one, and they can be filled, too. A returned Volume keeps its file system busy: as long as it exists, the
  // file system can be unmounted only lazily (umount -l).
  [[nodiscard]] std::vector<Volume> others_in() const;
  // Releases its top folder. From then on the size cannot be changed. The files' memory is held as long as the result
  // exists.
  [[nodiscard]] OpenFolder release();

 private:
  Volume() = default;
  std::filesystem::path folder_;
  Fd mount_;
};

namespace volume {

// Creates a file system that is not mounted yet. `source`: as in mount(8); `options`: separated by commas.
[[nodiscard]] Result<Fd> make_detached(const std::string& type, const std::string& source, const std::string& options);
// Marks a folder on which a file system of this deployment will be mounted. dissolve() uses the mark to notice when a
// user has put another folder in its place. Returns an error if the file system does not support such marks and the
// folder belongs to another user.
[[nodiscard]] Result<void> mark(const OpenFolder& folder, const std::string& id);
// Mounts the file system on the folder or file behind the descriptor `at`, whatever its current name is.
[[nodiscard]] Result<void> attach(int mount, int at);
// Unmounts the file system together with everything mounted in it. Processes that have its files open can still use
// them.
[[nodiscard]] Result<void> detach(int mount);

// Where the file system that holds `path` is mounted.
[[nodiscard]] Result<std::filesystem::path> mount_point(const std::filesystem::path& path);

// A mounted volume or disk (deploy/disk.h) of a deployment. of() returns them with inner mounts first.
struct Mounted {
  std::uint64_t number = 0;     // the kernel's number of the mount
  std::filesystem::path point;  // where it was mounted when of() was called
  std::string id;               // the deployment's id
};
[[nodiscard]] std::vector<Mounted> of(const std::string& id);
// Replaces the file system by a plain folder with plain files, even if processes have some of its files open, and
// removes the file system. After an error it may still be mounted.
enum class Dissolved {
  put_back,
  gone,  // unmounted: the node's user can cause this by removing the folder in a mount namespace without this mount
  exchanged,  // unmounted, but what was below it is no longer the marked folder
};
[[nodiscard]] Result<Dissolved> dissolve(const Mounted& mounted);
// For files that cannot be put back: copies what `top` holds to a new folder in `into`, and unmounts the file system.
// Returns the new folder. If `into` is missing, it is created so that only root may enter it.
[[nodiscard]] Result<std::filesystem::path> rescue(const OpenFolder& top, const std::filesystem::path& into);
// True if this file system is still mounted somewhere.
[[nodiscard]] bool is_mounted(const OpenFolder& top);
// The kernel's number of the mount that contains this folder.
[[nodiscard]] std::optional<std::uint64_t> number(const OpenFolder& folder);

}  // namespace volume
}  // namespace rose::deploy
