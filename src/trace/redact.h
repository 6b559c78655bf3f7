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

// The same events with other texts: `text` rewrites nodes, paths and addresses, `code` names of functions. The header
// stays empty.
[[nodiscard]] Trace rewritten(const Trace& trace, const Rewrite& text, const Rewrite& code);

// The same for events and header; boot ids are dropped. The hosts that the traces' headers name count as host names.
[[nodiscard]] Trace redacted(const Trace& trace, Redactor& redactor);

}  // namespace rose::trace
