#!/usr/bin/env bash
# Measures the cost of recording for the nodes of examples/record/raft. Runs with and without alternate. Usage: raft.sh
# BUILD [ROUNDS [SECONDS]]
set -euo pipefail
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
"$here/../../../examples/record/raft/install" "$build"
exec unshare --net -- sh -c 'ip link set lo up && exec "$@"' sh "$here/raft.py" \
  "${XDG_CACHE_HOME:-$HOME/.cache}/rose/bugs/raft-counter/raft-counter" "${2:-20}" "${3:-2}"
