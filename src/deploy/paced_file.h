// A file whose reads, writes and syncs take a configurable time, for the image of a slow disk. The kernel passes the
// requests to a process of rose (FUSE), which performs them on the backing file immediately and delays the answers.
// Alternatives in the kernel are insufficient: the blkio controller of v1 affects neither buffered writes of a node nor
// writes of a journal, and few kernels have dm-delay.
//
// The process lives as long as the file is in use. Once rose has ended, it answers without delay, so that nothing stays
// slow.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

// Requests are processed one after the other; each takes the time for its bytes (`rate`) and the time for one request
// (`iops`). Each answer is then delayed by a further `delay_ns`, independently of other answers. 0: unlimited.
struct Pace {
  std::uint64_t rate = 0;  // bytes per second
  double iops = 0;         // requests per second
  std::int64_t delay_ns = 0;
};

class PacedFile {
 public:
  // Checks that this machine supports such files, by creating and reading one. Returns ErrorKind::environment with what
  // is missing.
  [[nodiscard]] static Result<void> check();

  // `point`: an unused name, at which the file is mounted briefly.
  [[nodiscard]] static Result<std::unique_ptr<PacedFile>> make(const std::filesystem::path& point, int backing);
  PacedFile(const PacedFile&) = delete;
  PacedFile& operator=(const PacedFile&) = delete;
  // Other processes that have the file open can still use it, at full speed.
  ~PacedFile();

  // A descriptor for reading and writing. It is used like a descriptor of the backing file.
  [[nodiscard]] int fd() const { return file_.get(); }

  // Sets the pace of requests from now on. If there is no limit any more, waiting requests are answered immediately.
  void set(const Pace& pace);

  struct Counters {
    std::uint64_t requests = 0;  // number of requests that were delayed
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Counters counters() const;

 private:
  struct Shared;
  PacedFile() = default;

  Fd file_, socket_;
  pid_t pid_ = 0;
  Shared* shared_ = nullptr;
};

}  // namespace rose::deploy
