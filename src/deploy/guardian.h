// The guardian: a process that undoes harmful changes as soon as rose has died for any reason (relieve_after()); heal()
// does the rest. It executes this program again, so that it needs little memory. It has its own session and cgroup, so
// that it survives the end of rose's terminal, and a service manager that ends rose's cgroup (KillMode=control-group).
// It reads what to undo from the lock files (deploy/identity.h), in which rose notes every change before making it.
#pragma once

#include "base/result.h"

namespace rose::deploy {

// The guardian's first argument, in place of a command's name.
inline constexpr const char* kGuardianCommand = "guardian-of";

// Permits ensure_guardian() to start guardians. Call it only in a program whose main() passes `argv` with
// kGuardianCommand to run_guardian(); test programs do not.
void allow_guardian();
// Starts the guardian of this process unless one is running or none is allowed. Called before each run. If the guardian
// cannot be started, logs a warning: rose works without it, but only 'rose heal' then undoes what a killed rose leaves.
void ensure_guardian();
// Call it at a normal end of rose: the guardian ends without undoing anything.
void dismiss_guardian();

// The guardian itself. Returns its exit status.
[[nodiscard]] Result<int> run_guardian(int argc, char** argv);

}  // namespace rose::deploy
