// A disk of a node's own, so that its power can go: what was written and not synced is gone then, as the kernel's own
// ext4 has it; or so that it can be slow. The file system is on a loop device over a file without a name, so nothing of
// it outlives rose, however that ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "deploy/paced_file.h"

namespace rose::deploy {

// What of a file's unsynced sectors (512 bytes each) gets to the disk all the same. Without a share: none.
struct Torn {
  double share = 0;      // of each file's, 0 to below 1
  bool in_order = true;  // the first ones; else spread over all of them
};

struct PowerLoss {
  std::size_t gone = 0;  // files that had never been synced
  std::size_t shorter = 0;
  std::size_t older = 0;    // as long as before, but written since
  std::size_t torn = 0;     // of those, where some of the unsynced sectors are there
  std::uint64_t bytes = 0;  // that are missing
};

class Disk {
 public:
  // Can this machine have one? ErrorKind::environment with what it lacks.
  [[nodiscard]] static Result<void> check();

  // In place of a folder, with its owner and mode. Of the files in it, `outside` go on being where they are, as what a
  // console shows is not on the disk; all others are hidden. `id` is the deployment's: volume::dissolve takes the disk
  // away by it. `paced`: it can be slow.
  [[nodiscard]] static Result<Disk> make(const std::filesystem::path& folder, const std::string& id,
                                         const std::vector<std::string>& outside, bool paced = false);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  // How fast it is; null: it was not made for that.
  [[nodiscard]] PacedFile* pace() const { return paced_.get(); }

  // The power goes and comes back. Nobody may be using it any more: who has files of it open gets EIO from now on.
  [[nodiscard]] Result<PowerLoss> lose(const Torn& torn) const;

 private:
  Disk() = default;
  [[nodiscard]] Result<void> mount() const;

  std::filesystem::path folder_;
  std::string id_;
  Fd image_;
  std::unique_ptr<PacedFile> paced_;  // in front of the image
  struct Outside {
    std::string name;
    Fd fd;
  };
  std::vector<Outside> outside_;
};

}  // namespace rose::deploy
