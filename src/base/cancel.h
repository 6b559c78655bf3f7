// Turns Ctrl-C, SIGTERM and SIGHUP into a state that every wait can watch, so that rose can clean up before it exits. A
// repeated request must always have an effect, even if something hangs. If the current wait can be abandoned
// (Patience), the repeated request ends this wait. Otherwise the first repeated Ctrl-C prints a warning, and the next
// one ends rose without cleanup.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace rose::cancel {

// Blocks SIGINT, SIGTERM and SIGHUP (and, with `dump_signal`, SIGUSR1) in this and all later threads. From then on,
// these signals make fd() readable (SIGUSR1: dump_fd()). Call once, before the first thread starts. Children inherit
// the blocked signals and must unblock them (deploy's launcher and spawn_process() do).
[[nodiscard]] Result<void> install(bool dump_signal = false);

[[nodiscard]] bool requested();

// One of several activities that this process carries out in parallel, such as a run. Each can be cancelled alone.
// Thread-safe.
class Part {
 public:
  Part();
  void request();
  [[nodiscard]] bool requested() const { return requested_; }

 private:
  friend class Within;
  std::atomic<bool> requested_{false};
  Fd own_;  // readable once this part is cancelled
  Fd any_;  // readable once this part or everything is cancelled; closed if the kernel refused a descriptor
};

// While an object of this class exists, requested(), fd(), check() and sleep() react in this thread to the cancellation
// of `part` as well. `part` must outlive the object.
class Within {
 public:
  explicit Within(const Part& part);
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
};

// The number of cancellation requests so far. After the second, cleanup may stop early and leave something behind.
[[nodiscard]] unsigned times();
// Has the same effect as a Ctrl-C by the user.
void request();

// Marks a wait during cleanup. The wait continues after cancellation, but a further Ctrl-C ends it.
class Patience {
 public:
  Patience();
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  // True if a further request has arrived since the wait began.
  [[nodiscard]] bool over() const;

 private:
  unsigned enough_;
};

// Becomes readable when cancellation is requested and stays readable. -1 before install().
[[nodiscard]] int fd();
// An eventfd that counts SIGUSR1; -1 unless install(true).
[[nodiscard]] int dump_fd();

// Returns an error of kind `cancelled` if cancellation was requested.
[[nodiscard]] Result<void> check();

// Sleeps for up to `ns`. Returns false early if cancellation is requested.
bool sleep(std::int64_t ns);

}  // namespace rose::cancel
