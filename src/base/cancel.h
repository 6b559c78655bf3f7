// Ctrl-C and SIGTERM as a state that every wait can watch.
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

// Readable once cancellation is requested, and ever after; -1 before install().
[[nodiscard]] int fd();
// An eventfd that counts SIGUSR1; -1 unless install(true).
[[nodiscard]] int dump_fd();

// Error of kind `cancelled` when requested.
[[nodiscard]] Result<void> check();

// Sleeps up to `ns`; returns early with false when cancelled.
bool sleep(std::int64_t ns);

}  // namespace rose::cancel
