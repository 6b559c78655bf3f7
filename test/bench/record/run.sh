#!/usr/bin/env bash
# Measures the cost of recording for a cluster: the writes per second of the store in examples/kv when librose-rr
# records all its nodes, divided by those without. Both are measured alternately in one run. Usage: run.sh BUILD
# [ROUNDS]
set -euo pipefail
build=$(realpath "$1")
rounds=${2:-10}
here=$(cd "$(dirname "$0")" && pwd)
exec unshare --net -- sh -c 'ip link set lo up && exec "$@"' sh "$here/measure.py" "$build/examples/kv" "$rounds"
