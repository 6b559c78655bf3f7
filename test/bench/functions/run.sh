#!/usr/bin/env bash
# Measures the cost of thousands of watched functions: run.sh BUILD_FOLDER [SECONDS]. Exits with 1 if a limit is
# exceeded.
set -euo pipefail
build=$1
shift
exec "$build/test/bench/functions/bench_functions" "$@"
