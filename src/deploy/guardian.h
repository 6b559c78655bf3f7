// The guardian: a process of rose's own that undoes what does harm as soon as rose has died, however that came
// (relieve_after); the rest waits for heal(). It is this very program, executed again, so that it holds little memory;
// it has a session and a cgroup of its own, so that neither a terminal nor a service manager that ends rose's cgroup
// (KillMode=control-group) ends it too. What there is to undo it reads in the lock files (deploy/identity.h), where it
// is noted before it is done.
#pragma once

#include "base/result.h"

namespace rose::deploy {

// Its first argument, instead of a command's name.
inline constexpr const char* kGuardianCommand = "guardian-of";

// This program's main() hands `argv` with kGuardianCommand to run_guardian(). Without this no guardian is started: in
// test programs, which are other programs.
void allow_guardian();
// Starts the guardian of this process unless it has one that lives, or may not have one. Called before each run.
// Without a guardian rose works as well: 'rose heal' undoes what it leaves when it is killed. Says so in a warning.
void ensure_guardian();
// At a normal end of rose: the guardian ends, and undoes nothing.
void dismiss_guardian();

// The guardian itself. Returns its exit status.
[[nodiscard]] Result<int> run_guardian(int argc, char** argv);

}  // namespace rose::deploy
