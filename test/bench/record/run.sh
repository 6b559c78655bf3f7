#!/usr/bin/env bash
# The cost of recording for a cluster: writes per second of the store in examples/kv with librose-rr recording all its
# nodes ÷ without, measured alternately in one run. Usage: run.sh BUILD [ROUNDS]
set -euo pipefail
build=$(realpath "$1")
rounds=${2:-10}
here=$(cd "$(dirname "$0")" && pwd)
exec unshare --net -- sh -c 'ip link set lo up && exec "$@"' sh "$here/measure.py" "$build/examples/kv" "$rounds"
