// A file whose reads, writes and syncs take a configurable time, for the image of a slow disk. The kernel passes the
// requests to a process of rose (FUSE), which performs them on the backing file immediately and answers when their time
// has come. Alternatives in the kernel are insufficient: the blkio controller affects neither buffered writes of a node
// in v1 nor a journal's, and few kernels have dm-delay.
//
// That process lives as long as the file is in use, and answers immediately once rose has ended, so that nothing stays
// slow.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

// Requests are processed one after the other, each taking the time for its bytes and for itself. Each answer is sent
// `delay_ns` later, independently of others. 0: unlimited.
struct Pace {
  std::uint64_t rate = 0;  // bytes per second
  double iops = 0;         // requests per second
  std::int64_t delay_ns = 0;
};

class PacedFile {
 public:
  // Checks that this machine supports it, by trying. Returns ErrorKind::environment with what is missing.
  [[nodiscard]] static Result<void> check();

  // `point`: an unused name, which is needed only briefly.
  [[nodiscard]] static Result<std::unique_ptr<PacedFile>> make(const std::filesystem::path& point, int backing);
  PacedFile(const PacedFile&) = delete;
  PacedFile& operator=(const PacedFile&) = delete;
  // Other processes that have the file open keep it, at full speed.
  ~PacedFile();

  // To be read and written like the backing file.
  [[nodiscard]] int fd() const { return file_.get(); }

  // Applies from the next request on. If there is no limit any more, waiting requests are answered immediately.
  void set(const Pace& pace);

  struct Counters {
    std::uint64_t requests = 0;  // requests that were delayed, out of all
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
