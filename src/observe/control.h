// The control socket of a running tracer (0600): `rose dump` asks, the tracer answers with the
// bytes of a dump. Also what the tracer's process does on triggers.
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

// /run/rose/trace.sock for root, $XDG_RUNTIME_DIR/rose-trace.sock otherwise.
[[nodiscard]] std::filesystem::path default_control_socket();

// The name of a tracer's socket in the folder of the run that it watches (rose trace -c).
inline constexpr const char* kRunSocket = "trace.sock";

// Whether a tracer listens there, who may be another user's.
[[nodiscard]] bool answers(const std::filesystem::path& socket);

class ControlServer {
 public:
  // Writes a dump to the sink, piece by piece; says in a line what it holds ("12345 events, 0 lost").
  using Source = std::function<Result<std::string>(const trace::DumpWriter::Sink&)>;
  using Recordings = std::function<OpenRecordings()>;

  // `source` (or `recordings`, which may be none) is called for each request, on a thread of the request's own: who
  // reads slowly holds up nobody else. A socket file left by a killed tracer is taken over; one that answers is an
  // error (ErrorKind::usage, hint:
  // --control).
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> start(const std::filesystem::path& socket, Source source,
                                                                    Recordings recordings = {});
  virtual ~ControlServer() = default;  // removes the socket file
};

// Asks the tracer at `socket` for its window `after_ns` from now and writes it to `out` (beside, then renamed).
// Returns what the tracer said in one line ("12345 events, 0 lost").
[[nodiscard]] Result<std::string> request_dump(const std::filesystem::path& socket, const std::filesystem::path& out,
                                               std::int64_t after_ns);
// The same, to a sink. Its bytes are a whole dump only when this succeeds.
[[nodiscard]] Result<std::string> request_dump(const std::filesystem::path& socket, const trace::DumpWriter::Sink& out,
                                               std::int64_t after_ns);

// The recordings of the tracer's targets, as they stand now.
[[nodiscard]] Result<OpenRecordings> request_recordings(const std::filesystem::path& socket);

}  // namespace rose::observe
