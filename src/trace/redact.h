// A trace for third parties: its texts without host names, addresses, user names and long tokens. Names of functions,
// calls and errors are kept.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/redact.h"
#include "trace/event.h"

namespace rose::trace {

using Rewrite = std::function<std::string(std::string_view)>;

// Returns the same events with other texts: `text` rewrites nodes, paths and addresses, and `code` rewrites names of
// functions. The header is left empty.
[[nodiscard]] Trace rewritten(const Trace& trace, const Rewrite& text, const Rewrite& code);

// Redacts events and header, and drops boot ids. The hosts named in the headers of traces count as host names.
[[nodiscard]] Trace redacted(const Trace& trace, Redactor& redactor);

}  // namespace rose::trace
