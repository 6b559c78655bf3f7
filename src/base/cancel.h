// Ctrl-C and SIGTERM as a state that every wait can watch. Whoever asks again gets out, whatever hangs: a further one
// ends what is being waited for, if it can be ended (Patience); where nothing can, one is answered with a word, and the
// next ends this process.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace rose::cancel {

// Blocks SIGINT and SIGTERM (and, with `dump_signal`, SIGUSR1) in this and all later threads and
// turns them into the descriptors below. Call once, before the first thread starts.
// Children must unblock them again (deploy's launcher and Subprocess do).
[[nodiscard]] Result<void> install(bool dump_signal = false);

[[nodiscard]] bool requested();
// How often: whoever is asked again while it cleans up may leave more undone.
[[nodiscard]] unsigned times();
// As if the user had pressed Ctrl-C.
void request();

// A wait that goes on after cancellation, for something that cleans up, and that a further Ctrl-C ends.
class Patience {
 public:
  Patience();
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  // A further one came since the wait began.
  [[nodiscard]] bool over() const;

 private:
  unsigned enough_;
};

// Readable once cancellation is requested, and ever after; -1 before install().
[[nodiscard]] int fd();
// An eventfd that counts SIGUSR1; -1 unless install(true).
[[nodiscard]] int dump_fd();

// Error of kind `cancelled` when requested.
[[nodiscard]] Result<void> check();

// Sleeps up to `ns`; returns early with false when cancelled.
bool sleep(std::int64_t ns);

}  // namespace rose::cancel
