// The guardian: a process that undoes harmful changes as soon as rose has died for any reason (relieve_after); the rest
// waits for heal(). It executes this program again, so that it needs little memory; it has its own session and cgroup,
// so that neither a terminal nor a service manager that ends rose's cgroup (KillMode=control-group) ends it too. It
// reads what to undo from the lock files (deploy/identity.h), where every change is noted before it is made.
#pragma once

#include "base/result.h"

namespace rose::deploy {

// Its first argument, instead of a command's name.
inline constexpr const char* kGuardianCommand = "guardian-of";

// This program's main() passes `argv` with kGuardianCommand to run_guardian(). Without this call no guardian is
// started, for example in test programs, whose main() cannot do that.
void allow_guardian();
// Starts the guardian of this process unless one is running or none is allowed. Called before each run. Without a
// guardian rose works as well: 'rose heal' then undoes what a killed rose leaves. Logs a warning in that case.
void ensure_guardian();
// Call at a normal end of rose: the guardian ends without undoing anything.
void dismiss_guardian();

// The guardian itself. Returns its exit status.
[[nodiscard]] Result<int> run_guardian(int argc, char** argv);

}  // namespace rose::deploy
