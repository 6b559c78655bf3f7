#!/usr/bin/env bash
# What thousands of watched functions cost: run.sh BUILD_FOLDER [SECONDS]. Exits 1 when a bar is missed.
set -euo pipefail
build=$1
shift
exec "$build/test/bench/functions/bench_functions" "$@"
