// The header of a log line: a time, a level, a thread and a logger, in any order and in any brackets, followed by the
// message. A single parser suffices for log4j, logback, Python, Redis, NATS, PostgreSQL, nginx, glog and most others,
// because their headers differ only in order and punctuation.
#pragma once

#include <string>
#include <string_view>

#include "logs/line/form.h"

namespace rose::logs {

// Returns false if the line has no header, that is, if there is neither a time nor a level where a header has one.
// Unless it is nullptr, `layout` receives a description of the header: "time [thread] level logger - message".
[[nodiscard]] bool read_header(std::string_view line, Parts& parts, std::string* layout = nullptr);

}  // namespace rose::logs
