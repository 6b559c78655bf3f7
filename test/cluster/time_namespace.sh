#!/usr/bin/env bash
# In a time namespace, the monotonic clock differs by days. The times of events must be right for a tracer inside it,
# and for a tracer outside that traces a process inside. If they cannot be right, tracing is refused, and `rose doctor`
# gives the reason.
. "$(dirname "$0")/common.bash"
unshare -T --monotonic 1000 true 2>/dev/null || skip "no time namespaces (CONFIG_TIME_NS)"
cd "$work"
export TMPDIR=$work

# times WHAT COMMAND...: records a failed open between two readings of the clock.
times() {
  local what=$1 before after
  shift
  before=$(date +%s)
  rm -f dump.bin
  expect 0 "$@"
  after=$(date +%s)
  expect 0 "$rose" dump show dump.bin --format jsonl --type scf
  python3 - "$work/out" "$before" "$after" <<'PY' || fail "$what: wrong times"
import json, sys
before, after = (int(word) for word in sys.argv[2:])
times = [event["ts"] / 1e9 for event in map(json.loads, open(sys.argv[1])) if "rose-none" in (event.get("path") or "")]
if not times: sys.exit("no such event")
if not all(before - 1 <= time <= after + 2 for time in times): sys.exit(f"{times} is not between {before} and {after}")
PY
}
look() { echo "cat /rose-none/of-$1 2>/dev/null; true"; }
times "outside" "$rose" trace -o dump.bin -- sh -c "$(look outside)"
times "a tracer in one" unshare -T --monotonic 1000000 --boottime 2000000 "$rose" trace -o dump.bin -- sh \
  -c "$(look inside)"
times "a tracer in one that is behind" unshare -T --monotonic -100 "$rose" trace -o dump.bin -- sh -c "$(look behind)"
times "what is traced in one" "$rose" trace -o dump.bin -- unshare -T --monotonic 1000000 sh -c "$(look target)"

# In runs, too, events and the times of injected faults use one clock.
cat > rose.toml <<'TOML'
name = "time"
[deployment]
network = "host"
[[node]]
name = "n1"
command = ["/bin/sh", "-c", "while :; do cat /rose-none/run 2>/dev/null; mkdir made.$$; rmdir made.$$; sleep 0.02; done"]
[workload]
command = ["sleep", "1"]
[oracle]
command = ["true"]
TOML
printf 'version = 1\n[[fault]]\nid = "f"\nnode = "n1"\nkind = "pause"\nduration = "100ms"\nwhen = [{ elapsed = "100ms" }]\n' > schedule.toml
before=$(date +%s)
expect 0 unshare -T --monotonic 1000000 "$rose" replay schedule.toml -c rose.toml --runs 1 --report report
after=$(date +%s)
expect 0 "$rose" dump show report/traces/run-0001.dump --format jsonl --type scf
python3 - "$work/out" "$before" "$after" <<'PY' || fail "a run: wrong times"
import json, sys
before, after = (int(word) for word in sys.argv[2:])
times = [event["ts"] / 1e9 for event in map(json.loads, open(sys.argv[1])) if "ts" in event]
if not times or not all(before - 1 <= time <= after + 2 for time in times): sys.exit(f"{times[:3]} is not between {before} and {after}")
PY

expect 0 "$rose" doctor --json
json_is '[c["ok"] for c in j["capabilities"] if c["name"] == "event_clock"]' '[True]'
unshare -T --monotonic 1000000 "$rose" doctor --json > out || true
json_is '["time namespace" in c["detail"] and c["ok"] for c in j["capabilities"] if c["name"] == "event_clock"]' \
  '[True]'
# A mask makes rose believe that the offset cannot be determined.
export ROSE_MASK=event_clock
expect 3 "$rose" trace -o dump.bin -- true
says err 'the times of events would be wrong'
