#!/usr/bin/env bash
# run.sh [SECONDS]: builds the fuzzers (preset `fuzz`), and runs each for SECONDS (default 10). They start from the
# valid inputs of fuzz_smoke, which include the test programs of build/release if those exist. If a fuzzer finds an
# error, the input is stored in build/fuzz/found, and the exit status is 1. For longer runs, CORPUS names a folder in
# which the fuzzers keep their corpora. Without it, they begin anew each time, with the same seed (SEED, default 1; with
# 0, the seed changes each time).
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-10}

skip() { echo "SKIPPED: fuzzing: $*"; exit 77; }
command -v clang++-19 >/dev/null || skip "needs clang-19 and libclang-rt-19-dev"
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  clang++-19 -fsanitize=fuzzer -x c++ - -o /dev/null 2>/dev/null || skip "needs libclang-rt-19-dev"

victims=()
if [ -d build/release/test/programs ]; then victims=(-DROSE_TEST_BUILD="$PWD/build/release"); fi
cmake --preset fuzz "${victims[@]}" >/dev/null
cmake --build --preset fuzz
seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
build/fuzz/test/fuzz/fuzz_smoke --seeds "$seeds"
found=$PWD/build/fuzz/found
mkdir -p "$found"

# fuzz NAME: runs one fuzzer. Prints its output if it found something.
fuzz() {
  local name=$1 corpus=${CORPUS:-$seeds/corpus}/$1 status=0
  mkdir -p "$corpus" "$seeds/$name"
  "build/fuzz/test/fuzz/fuzz_$name" -seed="${SEED:-1}" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="$found/$name-" "$corpus" "$seeds/$name" \
    >"$seeds/$name.out" 2>&1 || status=$?
  if [ $status -ne 0 ]; then
    echo "fuzz_$name: exit status $status"
    tail -40 "$seeds/$name.out"
    return 1
  fi
  echo "fuzz_$name: $(grep -oE 'number_of_executed_units: [0-9]+' "$seeds/$name.out" | grep -oE '[0-9]+') inputs"
}
failed=0
names=$(sed -n '/^set(fuzz_targets/,/)$/s/^ *\([a-z_]*\):.*/\1/p' test/fuzz/CMakeLists.txt)
for name in $names; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || failed=1; done
  fuzz "$name" &
done
while [ -n "$(jobs -p)" ]; do wait -n || { status=$?; [ $status -eq 127 ] && break; failed=1; }; done
exit $failed
