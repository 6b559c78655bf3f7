// A worker makes runs on this machine for a diagnosis that runs on another one. It reads tasks from `in` and writes
// results to `out`; when `in` ends, it ends its run and itself. It cleans up after earlier workers on this machine that
// were killed.
#pragma once

#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace rose::engine {

struct WorkerOptions {
  std::string version;  // of rose; must equal that of the diagnosis
  // checks whether this machine lacks something; the error is reported to the diagnosis
  std::function<Result<void>()> check;
};
// Returns when `in` has ended. Errors are returned and also reported to the diagnosis.
[[nodiscard]] Result<void> serve(Fd in, Fd out, const WorkerOptions& options);

// The names of error kinds in the messages.
[[nodiscard]] std::string_view name_of(ErrorKind kind);
[[nodiscard]] ErrorKind kind_named(std::string_view name);

}  // namespace rose::engine
