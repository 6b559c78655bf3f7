// Holds single threads at a location in their program while all other threads continue.
//
// A BPF program sends the thread a SIGSTOP. That would stop the whole process, but a tracer (ptrace) intercepts the
// signal and keeps only this thread stopped. The tracer is a child of rose and not rose itself, because the kernel
// reports the end of a traced process to its tracer first, and rose, the parent of the nodes, must be informed of their
// ends. The tracer ends whenever rose ends; the kernel then lets all traced threads continue.
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

// How a chain's thread is held.
enum class Hold : std::uint32_t {
  none = 0,
  alone = 1,    // without effect on other threads
  stopped = 2,  // the thread was not traced yet, so the signal stopped its whole process for a moment
};

class Holder {
 public:
  // Starts the tracer. `chains`: in memory shared with BPF programs. `which`: the indices of the chains that hold
  // threads.
  [[nodiscard]] static Result<std::unique_ptr<Holder>> start(const rose_chain* chains, std::vector<std::size_t> which);
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Traces all threads of the process, including those that it creates later, so that a thread that gets the signal is
  // held without effect on other threads. Does nothing if the process has ended or another program traces it. `pidfd`:
  // a descriptor of this process, so that no other process with the same id is traced or continued.
  void watch(pid_t process, int pidfd);
  // Call it after the signal for this chain has been sent to the thread. Returns ErrorKind::environment if the thread
  // cannot be held; its process then continues.
  [[nodiscard]] Result<void> hold(std::size_t chain, pid_t process, int pidfd, pid_t thread);
  [[nodiscard]] Hold held(std::size_t chain) const;
  // Lets the chain's thread continue. If the thread has not stopped yet, it will not be held.
  void release(std::size_t chain);
  // Lets all threads continue untraced and ends the tracer.
  void stop();

 private:
  struct Shared;
  struct Command;
  Holder() = default;
  int ask(const Command& command, int pidfd = -1);

  std::mutex mutex_;
  Fd socket_;
  pid_t pid_ = 0;
  Shared* shared_ = nullptr;
  std::size_t shared_size_ = 0;
};

}  // namespace rose::inject
