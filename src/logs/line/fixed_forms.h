// Forms whose parts are at fixed places of the line.
#pragma once

#include <string_view>

#include "logs/line/form.h"

namespace rose::logs {

// Reads a line of glog: "I1122 18:13:08.905878    1243 round_trippers.go:560] text"; CockroachDB writes "I261122
// 18:13:08.905878 1243 3@server/x.go:560  text".
[[nodiscard]] bool read_klog(std::string_view line, Parts& parts);

// Reads "127.0.0.1 - - [22/Nov/2026:18:12:45 +0000] "GET / HTTP/1.1" 200 6 ...". The text of the message is the request
// and the status of the response.
[[nodiscard]] bool read_access(std::string_view line, Parts& parts);

}  // namespace rose::logs
