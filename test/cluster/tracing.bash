# Sourced after common.bash by tests that start processes and trace them with `rose trace`.

# start_trace ARG...: starts a tracer in the background with its control socket at $work/control.sock, and waits until
# it is ready. The array `as` may contain a command that executes the tracer, for example with other privileges.
start_trace() {
  : > "$work/trace.err"
  "${as[@]}" "$rose" trace --verbose --control "${control:-$work/control.sock}" -o "${out:-$work/dump.bin}" "$@" \
    >"$work/trace.out" 2>"$work/trace.err" &
  tracer=$!
  local deadline=$((SECONDS + 60))
  until grep -q ready "$work/trace.err"; do
    kill -0 $tracer 2>/dev/null && [ $SECONDS -lt $deadline ] ||
      { fail "rose trace $* did not get ready"; sed 's/^/  /' "$work/trace.err" | tail -20 >&2; return 1; }
    sleep 0.05
  done
}
as=()

# Ends the tracer with SIGINT. Its window is then in $work/events.
stop_trace() {
  local status=0
  kill -INT $tracer
  wait $tracer || status=$?
  tracer=
  [ $status -eq 0 ] || { fail "rose trace ended with $status"; tail -20 "$work/trace.err" >&2; }
  "$rose" dump show "${out:-$work/dump.bin}" --format jsonl > "$work/events"
}
tracer=

# has NODE PATH: checks that exactly one failed call on the path was recorded for the node.
has() {
  local n
  n=$(python3 -c '
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
print(sum(e.get("count", 1) or 1 for e in events if e.get("node") == sys.argv[2] and e.get("type") == "scf" and e.get("path") == sys.argv[3]))
' "$work/events" "$1" "$2")
  [ "$n" = 1 ] || fail "node $1 has $n failures of $2, not 1"
}

# The folders that were created in the cgroup hierarchy. At the end, they are removed together with their processes.
made=()
make_cgroup() {
  local path= part
  local IFS=/
  for part in $1; do
    path=$path${path:+/}$part
    [ -d "$cgroup2/$path" ] || { mkdir "$cgroup2/$path" && made+=("$cgroup2/$path"); }
  done
}
remove_cgroup() {
  local deadline=$((SECONDS + 10))
  until rmdir "$cgroup2/$1" 2>/dev/null; do
    [ $SECONDS -lt $deadline ] || { fail "cannot remove $1"; return; }; sleep 0.02
  done
}
# fail_in CGROUP PATH: runs a process in the cgroup that fails to open the path.
fail_in() { sh -c 'echo 0 > "$1/cgroup.procs" && exec cat "$2"' sh "$cgroup2/$1" "$2" 2>/dev/null || true; }

tidy() {
  local i
  if [ -n "$tracer" ]; then kill -KILL "$tracer" 2>/dev/null || true; wait "$tracer" 2>/dev/null || true; fi
  for ((i = ${#made[@]} - 1; i >= 0; i--)); do
    [ -d "${made[i]}" ] || continue
    echo 1 > "${made[i]}/cgroup.kill" 2>/dev/null || true
    until_true 10 rmdir "${made[i]}" || true
  done
}
trap 'status=$?; tidy; (exit $status); finish' EXIT
