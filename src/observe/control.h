// The control socket of a running tracer (0600): `rose dump` asks, the tracer answers with the
// bytes of a dump. Also what the tracer's process does on triggers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "trace/event.h"

namespace rose::observe {

// /run/rose/trace.sock for root, $XDG_RUNTIME_DIR/rose-trace.sock otherwise.
[[nodiscard]] std::filesystem::path default_control_socket();

class ControlServer {
 public:
  // `snapshot` is called from the server's thread for each request. A socket file left by a killed
  // tracer is taken over; one that answers is an error (ErrorKind::usage, hint: --control).
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> start(
      const std::filesystem::path& socket, std::function<Result<trace::Trace>()> snapshot);
  virtual ~ControlServer() = default;  // removes the socket file
};

// Asks the tracer at `socket` for its window `after_ns` from now and writes it to `out` (beside, then renamed).
// Returns what the tracer said in one line ("12345 events, 0 lost").
[[nodiscard]] Result<std::string> request_dump(const std::filesystem::path& socket,
                                               const std::filesystem::path& out, std::int64_t after_ns);

}  // namespace rose::observe
