// A worker: makes runs for a diagnosis elsewhere. It reads what to do from `in` and writes what came of it to `out`;
// when `in` ends it ends its run, and itself. What a killed one before it has left on this host it undoes.
#pragma once

#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace rose::engine {

struct WorkerOptions {
  std::string version;                  // of rose; that of the diagnosis must be the same
  std::function<Result<void>()> check;  // what this machine lacks; told to the diagnosis
};
// Returns once `in` has ended. Errors: what the diagnosis was told, too.
[[nodiscard]] Result<void> serve(Fd in, Fd out, const WorkerOptions& options);

// As they stand in messages.
[[nodiscard]] std::string_view name_of(ErrorKind kind);
[[nodiscard]] ErrorKind kind_named(std::string_view name);

}  // namespace rose::engine
