#!/usr/bin/env bash
# examples/bugs: real bugs of Debian's packages, tested with recordings. A plan is made from each dump (the fault that
# caused the failure must be among the first two candidates), schedules are replayed, including the hand-written one,
# and recorded logs are read. By default, the bugs with "ci": true in case.json are tested; otherwise those that are
# named after the build folder.
. "$(dirname "$0")/common.bash"
command -v ip > /dev/null || skip "ip (iproute2) is missing"
rose=$(realpath "$rose")
examples=$(realpath "$here/../../examples/bugs")
shift 2

# Computes the rank of the cause in the same way as test/planted/measure.py. Usage: plan case.json
ranks='
import json, sys
plan, case, measure_in = sys.argv[1:]
sys.path.insert(0, measure_in)
import measure
root = json.load(open(case))["root"]
rank = measure.rank_of(root, json.load(open(plan))["candidates"])
print(rank, root)
sys.exit(0 if rank is not None and rank <= 2 else 1)'

ran=0
reasons=
for case in "$examples"/*/case.json; do
  folder=$(dirname "$case")
  bug=$(basename "$folder")
  if [ $# -gt 0 ]; then
    [[ " $* " == *" $bug "* ]] || continue
  else
    python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1])).get("ci"))' "$case" || continue
  fi

  if [ -e "$folder/incident.dump" ]; then
    expect 0 "$rose" diagnose --plan --trace "$folder/incident.dump" --profile "$folder/profile.json.zst" \
      -c "$folder/rose.toml" --json
    cp "$work/out" "$work/plan.json"
    python3 -B -c "$ranks" "$work/plan.json" "$case" "$here/../planted" > "$work/rank" ||
      fail "$bug: the root cause has rank $(cat "$work/rank")"
    echo "$bug: root cause at rank $(cat "$work/rank")"
  fi

  # Plan from the logs alone. All files must be read and give candidates, although --plan makes no run to compare with.
  if [ -d "$folder/incident-logs" ]; then
    logs=()
    for file in "$folder"/incident-logs/*/*; do logs+=(--log "$(basename "$(dirname "$file")")=$file"); done
    expect 0 "$rose" diagnose --plan "${logs[@]}" -c "$folder/rose.toml" --json
    [ "$(grep -c 'read as' "$work/err")" -eq $((${#logs[@]} / 2)) ] ||
      fail "$bug: not all logs are read: $(cat "$work/err")"
  fi

  if why=$(unavailable "examples/bugs/$bug"); then
    reasons="$reasons $bug: $why;"
    continue
  fi
  status=0
  "$folder/install" > "$work/install.out" 2> "$work/install.err" || status=$?
  if [ $status -eq 77 ]; then
    reasons="$reasons $bug: $(tail -1 "$work/install.out");"
    continue
  fi
  [ $status -eq 0 ] || { fail "$bug: install exits $status: $(tail -3 "$work/install.err")"; continue; }

  ran=$((ran + 1))
  for schedule in schedule by-hand; do
    [ -e "$folder/$schedule.toml" ] || continue
    replays 2 "$folder/$schedule.toml" "$folder/rose.toml"
    if [ $failures -gt 0 ]; then break 2; fi
    echo "$bug: $schedule replayed, $(json 'j["reproduced"]') of $(json 'j["runs"]') in $(json 'round(j["seconds"])') s"
  done
done
if [ -n "$reasons" ]; then echo "not run:$reasons"; fi
[ $ran -gt 0 ] || [ $failures -gt 0 ] || skip "none can be installed here:$reasons"
