#!/usr/bin/env bash
# Sets up a fresh Debian 12 machine and runs all tests: pure (no root), kernel (real programs, tiny victims) and cluster
# (small real deployments). The tests of readers run under ASan and UBSan, and then each fuzzer runs for some seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "test/run.sh: run me as root: the kernel and cluster tests make namespaces and load programs" >&2
  exit 3
fi

began=$SECONDS
step() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - began)); }

step "packages"
cmake/install-packages.sh cmake/deps.txt test/deps.txt
# Debian's programs come first. Its Python has the required packages; and if the Python of a version manager came first,
# each of the thousands of starts in the tests would take a tenth of a second longer.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

step "build"
cmake --preset release >/dev/null
cmake --build --preset release --target all other-tests
cmake --preset fuzz -DROSE_TEST_BUILD="$PWD/build/release" >/dev/null

logs=$(mktemp -d)
# Cluster tests mostly wait for elections and silences. Meanwhile, the readers with sanitizers and their fuzzers are
# built at low priority. (If the scheduler distributes processor time among sessions, the whole session must have low
# priority.)
setsid sh -c 'echo 19 2>/dev/null > /proc/self/autogroup; exec nice -n 19 "$@"' nice \
  cmake --build build/fuzz --target reader-tests fuzz > "$logs/sanitized.build" 2>&1 &
sanitized=$!
trap 'kill -- -$sanitized 2>/dev/null || true; rm -rf "$logs"' EXIT
# tests NAME BUILD ARGUMENT...: runs ctest once. Its output and its log have the name NAME.
tests() {
  local name=$1 build=$2
  shift 2
  ctest --test-dir "build/$build" --output-on-failure "$@" 2>&1 | tee "$logs/$name.out" || true
  cp "build/$build/Testing/Temporary/LastTest.log" "$logs/$name.log" 2>/dev/null || true
  grep -q '^100% tests passed' "$logs/$name.out"
}
# names STATUS NAME: prints the names of the tests that ended with this status.
names() { { grep -oE "Test +#[0-9]+: [^ ]+ .*$1" "$logs/$2.out" || true; } | awk '{ print $3 }' | sort -u; }

step "tests"
# The tests mostly wait, so more of them run in parallel than there are processors. With even more, polling would take
# too much processor time.
jobs=$((4 * $(nproc)))
tests first release -LE readers -j "$jobs" || true
failed=$(names '\*\*\*(Failed|Timeout|Exception|Not Run)|\*\*\*Exception' first)

step "the readers' tests under AddressSanitizer and UndefinedBehaviorSanitizer"
# From here on, the tests wait for this build, so give it normal priority.
renice -n 0 -g $sanitized >/dev/null 2>&1 || true
{ echo 0 > /proc/$sanitized/autogroup; } 2>/dev/null || true
if ! wait $sanitized; then
  cat "$logs/sanitized.build"
  echo "test/run.sh: the sanitized readers cannot be built" >&2
  exit 1
fi
tests readers fuzz -L readers -j "$jobs" || true
sanitized_failed=$(names '\*\*\*(Failed|Timeout|Exception|Not Run)' readers)

step "the fuzzers"
fuzzed=0
test/fuzz/run.sh 5 || fuzzed=$?

# List what could not run: whole tests, and single cases of tests that passed.
skipped=$(grep -ahoE '^SKIPPED: .*' "$logs"/first.log "$logs"/readers.log | sort -u || true)
count() { sed '/^$/d' <<<"$1" | wc -l; }
passed=$(( $(names ' Passed' first | wc -l) + $(names ' Passed' readers | wc -l) ))
fails=$(( $(count "$failed") + $(count "$sanitized_failed") ))
# repeat BUILD NAMES: for each of these tests, prints the command that runs it again alone.
repeat() { sed -e '/^$/d' -e "s|.*|  &   (again: ctest --test-dir build/$1 -R '^&\$' --output-on-failure)|" <<<"$2"; }

step "done"
echo "skipped, and why:"
if [ -n "$skipped" ]; then sed 's/^SKIPPED: /  /' <<<"$skipped"; else echo "  none"; fi
echo "took longest, in seconds beside the others:"
{ grep -hoE 'Test +#[0-9]+: .* sec' "$logs"/first.out "$logs"/readers.out || true; } |
  awk '{ printf "%7.1f  %s\n", $(NF - 1), $3 }' | sort -rn | head -20
if [ $fails -gt 0 ]; then
  echo "failed:"
  repeat release "$failed"
  repeat fuzz "$sanitized_failed"
fi
[ $fuzzed -eq 0 ] || echo "a fuzzer failed, see above; what it found is in build/fuzz/found (again: test/fuzz/run.sh)"
echo "$passed passed, $fails failed, $(count "$skipped") skipped"
[ $fails -eq 0 ] && [ "$passed" -gt 0 ] && [ $fuzzed -eq 0 ]
