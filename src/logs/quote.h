// Messages as they are quoted in reports.
#pragma once

#include <cstddef>
#include <string>

#include "logs/reader.h"

namespace rose::logs {

// "server.log:17 of n1: 'cannot save'", with the text truncated.
[[nodiscard]] std::string quote(const Logs& logs, std::size_t node, const Message& message);

}  // namespace rose::logs
