// Waits for packets in flight that rose's network programs have let pass.
#pragma once

#include "base/result.h"

namespace rose::inject {

// Returns when every BPF program that was running at the call has ended, together with the kernel code around it that
// holds the same RCU read lock: that code puts the packet into a socket, or into the processor's backlog queue.
[[nodiscard]] Result<void> wait_for_programs();

// A veth device passes packets on through the backlog queue of the current processor. A busy machine may process that
// queue late. Returns when each processor has processed the packets that were in its queue at the call. Must be called
// in a network namespace whose loopback interface is up.
[[nodiscard]] Result<void> wait_for_backlogs();

}  // namespace rose::inject
