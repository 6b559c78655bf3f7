// Single threads that stand still at a place in their program while all others go on.
//
// A kernel program stops the thread there and then: it sends it, and no other, a SIGSTOP. That would stop the whole
// process, but for a tracer who takes the thread at the signal and keeps it. The tracer is a child of rose: a process
// of its own, because the end of a traced process is told to its tracer first, and rose is the nodes' parent. It goes
// when rose goes, however that may be; the kernel then lets all go on that it traced.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "inject/shared.h"

namespace rose::inject {

// How a chain's thread came to be held.
enum class Hold : std::uint32_t {
  none = 0,
  alone = 1,    // nothing else noticed
  stopped = 2,  // it was not traced yet: its process stood still for a moment
};

class Holder {
 public:
  // Starts the tracer. `chains`: in memory that the kernel programs share; `which` of them hold threads.
  [[nodiscard]] static Result<std::unique_ptr<Holder>> start(const rose_chain* chains, std::vector<std::size_t> which);
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Traces all threads of the process, and those that it makes: one that is sent the signal is held without anybody
  // else noticing. A process that is gone, or traced by another, is left alone.
  void watch(pid_t process);
  // The thread was sent the signal for this chain. ErrorKind::environment when it cannot be held; then its process goes
  // on.
  [[nodiscard]] Result<void> hold(std::size_t chain, pid_t process, pid_t thread);
  [[nodiscard]] Hold held(std::size_t chain) const;
  // The chain's thread goes on, or is not held at all when it comes.
  void release(std::size_t chain);
  // All go on, untraced, and the tracer ends.
  void stop();

 private:
  struct Shared;
  struct Command;
  Holder() = default;
  int ask(const Command& command);

  std::mutex mutex_;
  Fd socket_;
  pid_t pid_ = 0;
  Shared* shared_ = nullptr;
  std::size_t shared_size_ = 0;
};

}  // namespace rose::inject
