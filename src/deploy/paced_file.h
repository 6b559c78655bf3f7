// A file whose every read, write and sync takes as long as is asked: what the image of a slow disk lies on. The kernel
// hands the requests to a process of rose's (FUSE), which does them at once on the file behind it, and answers when
// their time has come. Of the kernel's own means, the blkio controller slows what a cgroup does and neither a v1 node's
// buffered writes nor a journal's, and dm-delay is in few kernels.
//
// That process lives as long as the file is in use, and answers at once when rose is gone: what rose leaves behind is
// as quick as ever.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

// Requests are done one after the other, each as long as its bytes and its being one take; each is answered `delay_ns`
// later, however many others wait for theirs. 0: no limit.
struct Pace {
  std::uint64_t rate = 0;  // bytes a second
  double iops = 0;         // requests a second
  std::int64_t delay_ns = 0;
};

class PacedFile {
 public:
  // Can this machine have one? ErrorKind::environment with what it lacks. Tried for real.
  [[nodiscard]] static Result<void> check();

  // `point`: a name that is free for a moment.
  [[nodiscard]] static Result<std::unique_ptr<PacedFile>> make(const std::filesystem::path& point, int backing);
  PacedFile(const PacedFile&) = delete;
  PacedFile& operator=(const PacedFile&) = delete;
  // Whoever else has it open keeps it, as quick as can be.
  ~PacedFile();

  // To be read and written like the file behind it.
  [[nodiscard]] int fd() const { return file_.get(); }

  // From the next request on. What waits is answered at once when there is no limit any more.
  void set(const Pace& pace);

  struct Told {
    std::uint64_t requests = 0;  // that had to wait, of all that came
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Told told() const;

 private:
  struct Shared;
  PacedFile() = default;

  Fd file_, socket_;
  pid_t pid_ = 0;
  Shared* shared_ = nullptr;
};

}  // namespace rose::deploy
