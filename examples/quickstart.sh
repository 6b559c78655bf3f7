#!/usr/bin/env bash
# The main job on a fresh Debian 12 machine: installs what the build needs, builds rose and a small
# replicated key-value store, makes each of the store's three planted failures happen under
# `rose trace`, and lets rose find and replay the faults from the dumps alone.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "quickstart: run me as root: rose makes namespaces and cgroups and loads kernel programs" >&2
  exit 3
fi

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

# Runs mostly wait: for elections, for the work to get on. So more of them go side by side than there are processors; as many as tell a rate.
jobs=$((5 * $(nproc)))
[ "$jobs" -le 10 ] || jobs=10

step "packages"
cmake/install-packages.sh cmake/deps.txt

step "build"
cmake --preset release >/dev/null
cmake --build --preset release
rose=$PWD/build/release/rose

step "this machine"
"$rose" doctor

summary=()
failed=0
for failure in snapshot-enospc crash-double-apply split-lost-writes; do
  example=$PWD/examples/kv/$failure
  work=$PWD/build/quickstart/$failure
  rm -rf "$work"
  mkdir -p "$work"

  step "$failure: profile (fault-free runs teach rose what is normal)"
  "$rose" profile -c "$example/rose.toml" -o "$work/profile.json"

  step "$failure: the incident, in \"production\", under rose trace"
  status=0
  "$rose" trace -c "$example/rose.toml" --profile "$work/profile.json" --incident "$example/incident.sh" \
    -o "$work/dump.bin" || status=$?
  if [ $status -ne 0 ]; then
    echo "quickstart: the incident did not make the failure happen (exit $status)" >&2
    failed=1
    summary+=("$failure: the incident did not make the failure happen")
    continue
  fi

  step "$failure: diagnose"
  status=0
  "$rose" diagnose --trace "$work/dump.bin" -c "$example/rose.toml" --profile "$work/profile.json" \
    -o "$work/schedule.toml" --report "$work/report" --jobs "$jobs" || status=$?
  if [ $status -ne 0 ]; then
    failed=1
    summary+=("$failure: not reproduced (exit $status)")
    continue
  fi

  step "$failure: replay"
  status=0
  "$rose" replay "$work/schedule.toml" -c "$example/rose.toml" --runs "$jobs" --jobs "$jobs" --report "$work/replay" || status=$?
  [ $status -eq 0 ] || failed=1
  summary+=("$failure: $(sed -n '1s/: .*//p' "$work/report/diagnosis.txt"), \
$(sed -n 's/^level/level/p' "$work/report/diagnosis.txt")
$(sed -n '/^what must happen/,/^$/p' "$work/report/diagnosis.txt" | sed '1d;$d')
    replay rate: $(grep -o '"rate":[0-9.]*' "$work/replay/replay.json" | head -1 | cut -d: -f2) over $jobs runs
    schedule:    $work/schedule.toml")
done

step "what rose found (up to $jobs runs went side by side: --jobs $jobs)"
for line in "${summary[@]}"; do printf '%s\n\n' "$line"; done
exit $failed
