// Waits for packets in flight that rose's BPF programs have already let pass.
#pragma once

#include "base/result.h"

namespace rose::inject {

// Returns when every BPF program that was running at the time of the call has ended, together with the kernel code
// around it that holds the same RCU read lock. That code puts the packet into a socket, or into the processor's backlog
// queue.
[[nodiscard]] Result<void> wait_for_programs();

// Returns when each processor has processed the packets that were in its backlog queue at the time of the call. A veth
// device passes packets on through the backlog queue of the current processor, and a busy machine may process that
// queue late. Call it in a network namespace whose loopback interface is up.
[[nodiscard]] Result<void> wait_for_backlogs();

}  // namespace rose::inject
