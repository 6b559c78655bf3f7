// Copies programs out of images if rose needs their functions. Each invocation of rose copies a program once and reads
// its functions from the copy. In the containers of all runs, the copy is mounted at the program's path, so all runs
// execute the same file, to which probes are attached.
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
