// Recordings on their way through the control socket: a tracer that opened them hands them to whoever asks, who copies
// them with what he may write.
#pragma once

#include <functional>

#include "base/result.h"
#include "observe/recordings.h"

namespace rose::observe {

// `writable` waits until the socket is, and says false when it is time to give up.
[[nodiscard]] bool send_recordings(int socket, const OpenRecordings& recordings, const std::function<bool()>& writable);
// `readable`: as above.
[[nodiscard]] Result<OpenRecordings> receive_recordings(int socket, const std::function<bool()>& readable);

}  // namespace rose::observe
