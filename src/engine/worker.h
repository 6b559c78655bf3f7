// A worker makes runs for a diagnosis on another machine. It reads tasks from `in` and writes results to `out`; when
// `in` ends, it ends its run and itself. It cleans up after earlier workers on this host that were killed.
#pragma once

#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace rose::engine {

struct WorkerOptions {
  std::string version;                  // of rose; must equal that of the diagnosis
  std::function<Result<void>()> check;  // what this machine lacks; reported to the diagnosis
};
// Returns when `in` has ended. Errors have also been reported to the diagnosis.
[[nodiscard]] Result<void> serve(Fd in, Fd out, const WorkerOptions& options);

// The names used in messages.
[[nodiscard]] std::string_view name_of(ErrorKind kind);
[[nodiscard]] ErrorKind kind_named(std::string_view name);

}  // namespace rose::engine
