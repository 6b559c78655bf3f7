// Makes a trace that can be given to third parties: without host names, addresses, user names and long tokens in its
// texts. The names of functions, calls and errors are kept.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/redact.h"
#include "trace/event.h"

namespace rose::trace {

using Rewrite = std::function<std::string(std::string_view)>;

// Returns the same events with other texts: `text` rewrites nodes, paths and addresses, `code` rewrites the names of
// functions. The header is empty.
[[nodiscard]] Trace rewritten(const Trace& trace, const Rewrite& text, const Rewrite& code);

// Redacts events and header, and removes the boot id. Adds the host that the header names to the host names of
// `redactor`.
[[nodiscard]] Trace redacted(const Trace& trace, Redactor& redactor);

}  // namespace rose::trace
