// Puts the messages of all files together, by node and time.
#pragma once

#include <deque>
#include <vector>

#include "logs/read/sink.h"
#include "logs/reader.h"

namespace rose::logs {

// `files`: for each file the messages of its nodes. Adds the kinds of all files to `templates`.
[[nodiscard]] Logs put_together(std::vector<std::deque<FileResult>>& files, Templates& templates);

}  // namespace rose::logs
