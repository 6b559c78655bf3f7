// Programs inside of images whose functions matter: taken out once a command, read from there, and mounted into the
// containers of all its runs at their places. So all runs execute one file, which is what the kernel's probes are
// attached to.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "config/config.h"

namespace rose::deploy {

class ImageFiles {
 public:
  virtual ~ImageFiles() = default;  // the folder goes
};
// Of nodes in containers: `binaries` become paths of this machine, `container->programs` says where they belong. Null
// when no node names functions, sources or binaries of an image. ErrorKind::input when an image or a file in it cannot
// be had.
[[nodiscard]] Result<std::unique_ptr<ImageFiles>> take_programs_out(config::Config& config);

}  // namespace rose::deploy
