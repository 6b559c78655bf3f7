// The control socket of a running tracer (mode 0600), through which `rose dump` requests its window. Triggers are in
// triggers.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "observe/recordings.h"
#include "trace/dump.h"

namespace rose::observe {

// /run/rose/trace.sock for root, otherwise $XDG_RUNTIME_DIR/rose-trace.sock.
[[nodiscard]] std::filesystem::path default_control_socket();

// The name of the tracer's socket in the folder of the run that it traces (rose trace -c).
inline constexpr const char* kRunSocket = "trace.sock";

// True if a tracer, possibly of another user, listens at this socket.
[[nodiscard]] bool answers(const std::filesystem::path& socket);

class ControlServer {
 public:
  // Writes a dump to the sink in pieces and returns a line that describes it ("12345 events, 0 lost").
  using Source = std::function<Result<std::string>(const trace::DumpWriter::Sink&)>;
  using Recordings = std::function<OpenRecordings()>;

  // `source` (or the optional `recordings`) is called for each request in a separate thread, so that a slow reader does
  // not delay others. A socket left by a killed tracer is taken over. If another tracer listens, returns
  // ErrorKind::usage with the hint --control.
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> start(const std::filesystem::path& socket, Source source,
                                                                    Recordings recordings = {});
  virtual ~ControlServer() = default;  // removes the socket
};

// Waits for `after_ns`, requests the window from the tracer at `socket` and writes it to `out` atomically. Returns the
// tracer's description ("12345 events, 0 lost").
[[nodiscard]] Result<std::string> request_dump(const std::filesystem::path& socket, const std::filesystem::path& out,
                                               std::int64_t after_ns);
// Like the function above, but writes to a sink. The bytes are a complete dump only if this succeeds.
[[nodiscard]] Result<std::string> request_dump(const std::filesystem::path& socket, const trace::DumpWriter::Sink& out,
                                               std::int64_t after_ns);

// Requests the recordings of the tracer's targets in their current state.
[[nodiscard]] Result<OpenRecordings> request_recordings(const std::filesystem::path& socket);

}  // namespace rose::observe
