#!/usr/bin/env bash
# Shows the main use of rose on a fresh Debian 12 machine: installs what the build needs, builds rose and a small
# replicated key-value store, makes each of the store's three planted failures happen under `rose trace`, and lets rose
# find and replay the faults from the dumps alone.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "quickstart: run me as root: rose makes namespaces and cgroups and loads kernel programs" >&2
  exit 3
fi

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

# Runs spend most of their time waiting (for elections, for the workload), so more runs than processors are made in
# parallel. For the same reason, the three failures are processed in parallel.
jobs=$((5 * $(nproc) / 2))
[ "$jobs" -le 5 ] || jobs=5

step "packages"
cmake/install-packages.sh cmake/deps.txt

step "build"
cmake --preset release >/dev/null
cmake --build --preset release --target rose example_kv
rose=$PWD/build/release/rose

step "this machine"
"$rose" doctor

work=$PWD/build/quickstart
rm -rf "$work"
mkdir -p "$work"

# Processes one failure, from the profile to the replay; the result goes to the file `found` in its folder.
go_through() {
  local failure=$1 folder=$work/$1 example=$PWD/examples/kv/$1 status=0
  mkdir -p "$folder"

  step "$failure: profile (rose learns from fault-free runs what is normal)"
  "$rose" profile -c "$example/rose.toml" -o "$folder/profile.json"

  step "$failure: the incident, in \"production\", under rose trace"
  "$rose" trace -c "$example/rose.toml" --profile "$folder/profile.json" --incident "$example/incident.sh" \
    -o "$folder/dump.bin" || status=$?
  if [ $status -ne 0 ]; then
    echo "quickstart: the incident did not make the failure happen (exit $status)" >&2
    echo "$failure: the incident did not make the failure happen" > "$folder/found"
    return 1
  fi

  step "$failure: diagnose"
  "$rose" diagnose --trace "$folder/dump.bin" -c "$example/rose.toml" --profile "$folder/profile.json" \
    -o "$folder/schedule.toml" --report "$folder/report" --jobs "$jobs" || status=$?
  if [ $status -ne 0 ]; then
    echo "$failure: not reproduced (exit $status)" > "$folder/found"
    return 1
  fi

  step "$failure: replay"
  "$rose" replay "$folder/schedule.toml" -c "$example/rose.toml" --runs "$jobs" --jobs "$jobs" \
    --report "$folder/replay" || status=$?
  cat > "$folder/found" <<FOUND
$failure: $(sed -n '1s/: .*//p' "$folder/report/diagnosis.txt"), $(sed -n 's/^level/level/p' "$folder/report/diagnosis.txt")
$(sed -n '/^what must happen/,/^$/p' "$folder/report/diagnosis.txt" | sed '1d;$d')
    replay rate: $(grep -o '"rate":[0-9.]*' "$folder/replay/replay.json" | head -1 | cut -d: -f2) over $jobs runs
    schedule:    $folder/schedule.toml
FOUND
  return $status
}

# The output of the first failure is shown while it is processed, that of the others afterwards.
echo
echo "Three failures are processed in parallel."
echo "You see the output of the first one while it runs, then that of the others."
failures=(snapshot-enospc crash-double-apply split-lost-writes)
declare -A running=()
trap 'for group in "${running[@]}"; do kill -TERM -- "-$group" 2>/dev/null || true; done; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
set -m  # each job gets its own process group, which is ended as a whole
for failure in "${failures[@]:1}"; do
  go_through "$failure" > "$work/$failure.out" 2>&1 < /dev/null &
  running[$failure]=$!
done
set +m
failed=0
go_through "${failures[0]}" || failed=1
for failure in "${failures[@]:1}"; do
  wait "${running[$failure]}" || failed=1
  unset "running[$failure]"
  cat "$work/$failure.out"
done

step "what rose found (with up to $jobs parallel runs for each failure: --jobs $jobs)"
for failure in "${failures[@]}"; do
  cat "$work/$failure/found" 2>/dev/null || echo "$failure: interrupted, see above"
  echo
done
exit $failed
