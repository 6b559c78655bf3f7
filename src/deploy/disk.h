// A separate disk for a node's folder, which can lose power (unsynced data is lost, as the kernel's own ext4 defines
// it) or be slow. The file system is on a loop device over an unlinked file, so nothing of it remains however rose
// ends.
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

// Which of a file's unsynced sectors (512 bytes each) reach the disk nevertheless. Without a share: none.
struct Torn {
  double share = 0;      // fraction of each file's, from 0 to below 1
  bool in_order = true;  // the first ones; otherwise distributed over all of them
};

struct PowerLoss {
  std::size_t gone = 0;  // files that had never been synced
  std::size_t shorter = 0;
  std::size_t older = 0;    // same size as before, but written since
  std::size_t torn = 0;     // of those, files with some of their unsynced sectors
  std::uint64_t bytes = 0;  // missing bytes
};

class Disk {
 public:
  // Checks that this machine supports it. Returns ErrorKind::environment with what is missing.
  [[nodiscard]] static Result<void> check();

  // Replaces the folder `at`, keeping owner and mode. Its files listed in `outside` stay where they are, because
  // console output is not on the disk; all others are hidden. `own`: a folder of the run that only root may enter.
  // `id`: the deployment's, by which volume::of() finds the disk. `paced`: it can be slow.
  [[nodiscard]] static Result<Disk> make(OpenFolder at, const OpenFolder& own, const std::string& id,
                                         const std::vector<std::string>& outside, bool paced = false);

  // The path at which it was created.
  [[nodiscard]] const std::filesystem::path& folder() const { return at_.path(); }

  // Writes everything to it, so that a power loss takes none of it.
  [[nodiscard]] Result<void> sync() const;

  // Controls its speed; null if it was not created with `paced`.
  [[nodiscard]] PacedFile* pace() const { return paced_.get(); }

  // For a disk that other nodes use too: it is spared by power losses.
  void keep_power() { keeps_power_ = true; }
  [[nodiscard]] bool keeps_power() const { return keeps_power_; }

  // Simulates a power loss followed by a restart. The node must have ended; processes that still have files of it open
  // get EIO from now on.
  [[nodiscard]] Result<PowerLoss> lose(const Torn& torn);

  // Its top folder; none after a power loss that failed. The loop device is held as long as the result exists.
  [[nodiscard]] std::optional<OpenFolder> release() { return std::exchange(top_, std::nullopt); }

 private:
  Disk(OpenFolder at, OpenFolder own, std::string id) : at_(std::move(at)), own_(std::move(own)), id_(std::move(id)) {}
  [[nodiscard]] Result<void> mount(const std::function<Result<void>(const OpenFolder& top)>& prepare);
  [[nodiscard]] Result<Fd> outside_file(const std::string& name, const struct stat& folder) const;

  OpenFolder at_;  // below the disk
  OpenFolder own_;
  std::string id_;
  std::optional<OpenFolder> top_;  // of the disk
  bool keeps_power_ = false;
  Fd image_;
  std::unique_ptr<PacedFile> paced_;  // below the image
  struct Outside {
    std::string name;
    Fd fd;
  };
  std::vector<Outside> outside_;
};

}  // namespace rose::deploy
