#!/usr/bin/env bash
# Sets up a fresh Debian 12 machine and passes all tests: pure (no root), kernel (real programs, tiny
# victims) and cluster (small real deployments), and those that read files once more under ASan and UBSan.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "test/run.sh: run me as root: the kernel and cluster tests make namespaces and load programs" >&2
  exit 3
fi

cmake/install-packages.sh cmake/deps.txt test/deps.txt

cmake --preset release >/dev/null
cmake --build --preset release --target all tests
cmake --preset asan-ubsan -DROSE_BUILD_EXAMPLES=OFF >/dev/null
cmake --build --preset asan-ubsan --target reader-tests

status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Machines are shared and noisy: a test of real clusters that fails gets one more try, and ctest says so.
ctest --preset release --repeat until-pass:2 2>&1 | tee "$log" || status=1
echo "== the readers' tests under AddressSanitizer and UndefinedBehaviorSanitizer"
ctest --preset asan-ubsan -L readers 2>&1 | tee -a "$log" || status=1

echo
echo "skipped, and why:"
grep -h '^SKIPPED:' build/release/Testing/Temporary/LastTest.log build/asan-ubsan/Testing/Temporary/LastTest.log | sort -u || echo "  none"
# From ctest's own last lines: a test that passed at its second try has passed.
skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
failed=$(awk '/tests passed, .* tests failed out of/ { n += $4 } END { print n + 0 }' "$log")
passed=$(awk -v bad=$((failed + skipped)) '/tests passed, .* tests failed out of/ { n += $NF } END { print n - bad }' "$log")
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
