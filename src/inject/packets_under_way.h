// When are packets that a kernel program of ours has let pass no longer under way?
#pragma once

#include "base/result.h"

namespace rose::inject {

// Returns when every kernel program that ran when this was called has ended, together with what its caller then did
// with the packet under the same lock: hand it to its socket, or queue it for the processor (see below).
[[nodiscard]] Result<void> wait_for_programs();

// A veth hands packets over through a queue of the processor, which a busy machine may leave for long. Returns when
// each processor has taken in what stood in its queue. In a network namespace whose loopback interface is up.
[[nodiscard]] Result<void> wait_for_backlogs();

}  // namespace rose::inject
