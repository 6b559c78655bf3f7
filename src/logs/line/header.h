// The usual beginning of a log line: a time, a level, a thread, a logger, in whatever order and brackets, then the
// message. One reader for log4j, logback, Python, Redis, NATS, PostgreSQL, nginx, glog and most others, since what they
// write differs in order and dress only.
#pragma once

#include <string>
#include <string_view>

#include "logs/line/form.h"

namespace rose::logs {

// Returns false if the line has no such beginning (neither a time nor a level that stands as one). `layout`, unless
// nullptr, receives what was found: "time [thread] level logger - message".
[[nodiscard]] bool read_header(std::string_view line, Parts& parts, std::string* layout = nullptr);

// Lines of an untimed log, or between timed lines: does this one begin something, although it has no header ("panic:
// ...", "Segmentation fault"), or is it the rest of what stands before ("\tat org.x.Y", "Caused by: ...")?
[[nodiscard]] bool begins_by_itself(std::string_view line);
[[nodiscard]] bool looks_like_rest(std::string_view line);
// "java.io.IOException: No space left on device", "Caused by: ...", "OSError: [Errno 28] ...": the line of a stack
// trace that names what was thrown.
[[nodiscard]] bool names_exception(std::string_view line);

}  // namespace rose::logs
