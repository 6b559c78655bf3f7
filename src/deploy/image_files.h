// Programs inside images whose functions are needed. Each command of rose copies them once and reads the copies, which
// are also mounted at the programs' paths in the containers of all runs. All runs then execute the same file, to which
// probes are attached.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "config/config.h"

namespace rose::deploy {

class ImageFiles {
 public:
  virtual ~ImageFiles() = default;  // removes the folder with the copies
};
// For nodes in containers: copies their programs, replaces `binaries` by the paths of the copies, and stores the
// original paths in `container->programs`. Returns null if no node names functions, sources or binaries of an image.
// Returns ErrorKind::input if an image or a file in it is not available.
[[nodiscard]] Result<std::unique_ptr<ImageFiles>> take_programs_out(config::Config& config);

}  // namespace rose::deploy
