// Carries out a notified call in place of the thread, in whole or in part, on a duplicate of its descriptor, so that
// the file position and all other state of the open file change as if the thread had made the call.
#pragma once

#include <cstdint>
#include <functional>

#include "inject/call.h"

namespace rose::inject {

// Whether `effect = "full"` and `{ bytes = n }` are possible for this system call.
[[nodiscard]] bool can_carry_out(int number);
[[nodiscard]] bool can_carry_out_partly(int number);

// True for regular files and block devices. Other files may block for a long time.
[[nodiscard]] bool is_quick(NotifiedCall& call);

// Uses the caller's rights, and resolves socket paths as the caller sees them. Returns what the kernel would have
// returned (-errno for errors). `most`: maximum number of bytes, -1: all. `alive` tells whether the caller is still in
// that call; it is checked after all memory of the caller has been read, before anything is written to it, and
// periodically while the call would block. If it returns false, the result is -EINTR.
[[nodiscard]] std::int64_t carry_out(NotifiedCall& call, std::int64_t most, const std::function<bool()>& alive);

}  // namespace rose::inject
