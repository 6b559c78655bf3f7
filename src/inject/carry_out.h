// Carries out a notified call in the thread's stead, in whole or in part, on a duplicate of its descriptor: the
// file position and everything else of the open file move as if it had done so itself.
#pragma once

#include <cstdint>
#include <functional>

#include "inject/call.h"

namespace rose::inject {

// Can `effect = "full"` be done for this syscall? And `{ bytes = n }`?
[[nodiscard]] bool can_carry_out(int number);
[[nodiscard]] bool can_carry_out_partly(int number);

// Only regular files and block devices: others may make us wait for somebody else.
[[nodiscard]] bool is_quick(NotifiedCall& call);

// With the caller's rights, and paths of sockets as the caller sees them. What the kernel would have returned (-errno
// for errors). `most`: bytes to move at most, -1 all. `alive`, is the caller still in that call, is asked after all has
// been read of it, before anything is written to it, and now and then where the call would wait; false ends it with
// -EINTR.
[[nodiscard]] std::int64_t carry_out(NotifiedCall& call, std::int64_t most, const std::function<bool()>& alive);

}  // namespace rose::inject
