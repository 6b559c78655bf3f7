#!/usr/bin/env bash
# Runs all benchmarks. Builds with the release preset, prints a Markdown table of ratios whose two sides were measured
# in the same run, and then the results of Google Benchmark. Takes about ten minutes. Options are passed to
# test/bench/measure.py (--help).
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "$(id -u)" -ne 0 ]; then
  echo "test/bench/run.sh: run me as root: it loads kernel programs" >&2
  exit 3
fi
cmake/install-packages.sh cmake/deps.txt test/deps.txt >&2
cmake --preset release >/dev/null
cmake --build --preset release --target bench >&2
echo "$(date -u +%F), kernel $(uname -r), $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
echo
test/bench/measure.py --build build/release "$@"
echo
test/bench/window.py --build build/release
echo
build/release/test/bench/rose_bench
for script in test/bench/*/run.sh; do  # benchmarks with their own programs
  [ -x "$script" ] || continue
  echo
  "$script" build/release
done
