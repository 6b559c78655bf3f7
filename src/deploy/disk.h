// A separate disk for a node's folder, which can lose power or be slow. A power loss loses unsynced data exactly as on
// a real disk, because the file system is the kernel's own ext4. The file system is on a loop device over an unlinked
// file, so nothing of it remains however rose ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/folder.h"
#include "base/result.h"
#include "deploy/paced_file.h"

namespace rose::deploy {

// Determines which of a file's unsynced sectors (512 bytes each) are on the disk after a power loss: none if `share` is
// 0.
struct Torn {
  double share = 0;      // fraction of each file's unsynced sectors, from 0 to below 1
  bool in_order = true;  // true: the first sectors of the file; false: distributed over the file
};

struct PowerLoss {
  std::size_t gone = 0;  // files that were never synced and are missing
  std::size_t shorter = 0;
  std::size_t older = 0;    // files that lost writes, but have the same size as before
  std::size_t torn = 0;     // among all of these, files in which some unsynced sectors were kept
  std::uint64_t bytes = 0;  // missing bytes
};

class Disk {
 public:
  // Checks that this machine supports such disks. Returns ErrorKind::environment with what is missing.
  [[nodiscard]] static Result<void> check();

  // Replaces the folder `at`, keeping owner and mode. Its files listed in `outside` (console output) are not on the
  // disk and stay visible; all its other files are hidden. `own`: a folder of the run that only root may enter. `id`:
  // the deployment's id, by which volume::of() finds the disk. `paced`: the disk can be slow.
  [[nodiscard]] static Result<Disk> make(OpenFolder at, const OpenFolder& own, const std::string& id,
                                         const std::vector<std::string>& outside, bool paced = false);

  // The path at which it was created.
  [[nodiscard]] const std::filesystem::path& folder() const { return at_.path(); }

  // Syncs the disk, so that a power loss loses nothing that was written until now.
  [[nodiscard]] Result<void> sync() const;

  // Controls its speed; null if it was not created with `paced`.
  [[nodiscard]] PacedFile* pace() const { return paced_.get(); }

  // Excludes the disk from power losses, because other nodes use it, too.
  void keep_power() { keeps_power_ = true; }
  [[nodiscard]] bool keeps_power() const { return keeps_power_; }

  // Simulates a power loss followed by a restart. The node must have ended; processes that still have files of it open
  // get EIO from now on.
  [[nodiscard]] Result<PowerLoss> lose(const Torn& torn);

  // Releases the disk's top folder. Returns nothing after a power loss that failed. The loop device exists as long as
  // the result exists.
  [[nodiscard]] std::optional<OpenFolder> release() { return std::exchange(top_, std::nullopt); }

 private:
  Disk(OpenFolder at, OpenFolder own, std::string id) : at_(std::move(at)), own_(std::move(own)), id_(std::move(id)) {}
  [[nodiscard]] Result<void> mount(const std::function<Result<void>(const OpenFolder& top)>& prepare);
  [[nodiscard]] Result<Fd> outside_file(const std::string& name, const struct stat& folder) const;

  OpenFolder at_;  // the folder over which the disk is mounted
  OpenFolder own_;
  std::string id_;
  std::optional<OpenFolder> top_;  // the disk's top folder
  bool keeps_power_ = false;
  Fd image_;
  std::unique_ptr<PacedFile> paced_;  // between the loop device and the image
  struct Outside {
    std::string name;
    Fd fd;
  };
  std::vector<Outside> outside_;
};

}  // namespace rose::deploy
