// A separate disk for a node's folder, which can lose power (unsynced data is lost, as the kernel's own ext4 defines
// it) or be slow. The file system is on a loop device over an unlinked file, so nothing of it remains however rose
// ends.
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

// Which of a file's unsynced sectors (512 bytes each) reach the disk all the same. Without a share: none.
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

  // Replaces a folder, with the same owner and mode. Of its files, those in `outside` stay where they are (console
  // output is not on the disk); all others are hidden. `id` is the deployment's, by which volume::dissolve finds the
  // disk. `paced`: it can be slow.
  [[nodiscard]] static Result<Disk> make(const std::filesystem::path& folder, const std::string& id,
                                         const std::vector<std::string>& outside, bool paced = false);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  // Controls its speed; null if it was not created with `paced`.
  [[nodiscard]] PacedFile* pace() const { return paced_.get(); }

  // Simulates a power loss and reboot. No process should be using it: processes with open files get EIO from now on.
  [[nodiscard]] Result<PowerLoss> lose(const Torn& torn) const;

 private:
  Disk() = default;
  [[nodiscard]] Result<void> mount() const;

  std::filesystem::path folder_;
  std::string id_;
  Fd image_;
  std::unique_ptr<PacedFile> paced_;  // below the image
  struct Outside {
    std::string name;
    Fd fd;
  };
  std::vector<Outside> outside_;
};

}  // namespace rose::deploy
