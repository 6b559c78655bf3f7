// Passes recordings through the control socket: a tracer that has opened them sends the descriptors to the client,
// which copies them with its own permissions.
#pragma once

#include <functional>

#include "base/result.h"
#include "observe/recordings.h"

namespace rose::observe {

// `writable` waits for the socket; it returns false to give up.
[[nodiscard]] bool send_recordings(int socket, const OpenRecordings& recordings, const std::function<bool()>& writable);
// `readable` waits for the socket; it returns false to give up.
[[nodiscard]] Result<OpenRecordings> receive_recordings(int socket, const std::function<bool()>& readable);

}  // namespace rose::observe
