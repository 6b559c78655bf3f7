#!/usr/bin/env bash
# A diagnosis that is interrupted (Ctrl-C, SIGKILL, a record that is cut in the middle of a line) continues from its
# record, and ends like one that was not interrupted, with one run at a time and with several in parallel.
. "$(dirname "$0")/common.bash"
cd "$work"
export TMPDIR=$work

# The node reads four files repeatedly, and prints which of them it could not read. If it cannot read the third one,
# that is the bug.
cat > node.sh <<'SH'
touch broken
for f in one two three four; do echo "$f" > $f; done
touch rounds ready
while :; do
  for f in one two three four; do { read -r line < $f; } 2>/dev/null || echo "no $f" >> broken; done
  echo >> rounds
  sleep 0.1
done
SH
# Even on a busy machine, a run lasts until the node has read all files.
cat > rounds.sh <<'SH'
begun=$(wc -l < a/rounds)
sleep "$1"
until [ $(wc -l < a/rounds) -ge $((begun + 3)) ]; do sleep 0.05; done
SH
cat > rose.toml <<'TOML'
name = "resume"
[deployment]
subnet = "10.82.7.0/24"
[[node]]
name = "a"
command = ["/bin/sh", "./node.sh"]
ready = { command = ["test", "-e", "a/ready"], timeout = "60s" }
[workload]
command = ["/bin/sh", "./rounds.sh", "0.3"]
timeout = "60s"
[oracle]
command = ["grep", "-q", "no three", "a/broken"]
[diagnose]
max_runs = 60
confirm_runs = 4
TOML
sed -i -e "s#\"./node.sh\"#\"$work/node.sh\"#" -e "s#\"./rounds.sh\"#\"$work/rounds.sh\"#" rose.toml
{
  echo '{"meta":{"version":1,"node":"a","window":1000,"lost":0,"workload_ts":1763755200000000000}}'
  at=0
  for f in one two three four; do
    at=$((at + 1))
    echo "{\"ts\":176375520${at}000000000,\"node\":\"a\",\"type\":\"scf\",\"pid\":41,\"tid\":41,\"syscall\":\"openat\",\"errno\":\"EIO\",\"fd\":null,\"path\":\"/srv/a/$f\",\"peer\":null}"
  done
} > dump.jsonl

# diagnose REPORT JOBS [OPTION...]: runs in the background. Its process id is in $pid.
config=rose.toml
diagnose() {
  local report=$1 jobs=$2
  shift 2
  "$rose" diagnose --trace dump.jsonl -c $config --report "$report" --jobs "$jobs" -o "$report.toml" --json "$@" \
    >"$report.out" 2>"$report.err" &
  pid=$!
}
runs() { if [ -e "$1/record.jsonl" ]; then wc -l < "$1/record.jsonl"; else echo 0; fi; }
# The part of the result that must be equal. Seconds differ, and so does the number of runs without faults: on a busy
# machine, a fault may have no effect, and such a run counts as one without faults.
result() {
  python3 - "$1.out" "$1.toml" <<'PY'
import json, re, sys
j = json.load(open(sys.argv[1]))
keys = ("verdict", "level", "schedules", "runs", "confirm_runs", "rate", "interval", "words")
told = str([j[k] for k in keys]) + "\n" + open(sys.argv[2]).read()
print(re.sub(r"(Without faults it occurred in 0) of \d+", r"\1", told))
PY
}
ended() { ! kill -0 "$pid" 2>/dev/null; }

for jobs in 1 3; do
  if [ $jobs = 3 ]; then
    # Minimisation makes one run at a time, so interrupt it only once.
    sed 's/^confirm_runs.*/&\nsimplify = false/' rose.toml > several.toml
    config=several.toml
  fi
  diagnose whole$jobs $jobs
  status=0
  wait $pid || status=$?
  [ $status -eq 0 ] || { fail "the undisturbed diagnosis ended with $status"; tail -5 whole$jobs.err >&2; continue; }
  total=$(runs whole$jobs)
  grep -q '"\*/three"' whole$jobs.toml || fail "the schedule found does not affect the third file"

  # The diagnosis is killed repeatedly, each time a few runs later, at an arbitrary moment of a run.
  again=()
  kills=0
  until [ $kills -ge 4 ]; do
    before=$(runs cut$jobs)
    diagnose cut$jobs $jobs "${again[@]}"
    again=(--resume)
    until_true 120 eval "ended || [ \$(runs cut$jobs) -gt $((before + RANDOM % 3)) ]" || break
    ended && break
    sleep 0.$((RANDOM % 9))
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null || true
    kills=$((kills + 1))
    # Truncate the last line of the record, as if the kill had come during a write.
    if [ $kills -eq 2 ] && [ "$(runs cut$jobs)" -gt 0 ]; then truncate -s -40 cut$jobs/record.jsonl; fi
  done
  [ $kills -ge 2 ] || fail "the diagnosis ended before it could be killed twice"
  expect 0 "$rose" heal
  nothing_left "after SIGKILL and heal"
  # After Ctrl-C, there is nothing to heal.
  before=$(runs cut$jobs)
  diagnose cut$jobs $jobs --resume
  until_true 120 eval "ended || [ \$(runs cut$jobs) -gt $before ]"
  if ! ended; then
    kill -INT $pid
    status=0
    wait $pid || status=$?
    wanted=4
    if grep -q 'confirmed: ' cut$jobs.err; then wanted=0; fi
    [ $status -eq $wanted ] || fail "Ctrl-C: exit $status instead of $wanted"
    grep -q -- '--resume continues' cut$jobs.err || fail "Ctrl-C does not report how to resume"
    nothing_left "after Ctrl-C"
  fi
  diagnose cut$jobs $jobs --resume
  status=0
  wait $pid || status=$?
  [ $status -eq 0 ] || { fail "the resumed diagnosis ended with $status"; tail -5 cut$jobs.err >&2; }
  # Every workload sleeps for 0.3 s. The runs that were made before the kills are included in the total, too.
  python3 -c "import json; j = json.load(open('cut$jobs.out')); assert j['seconds'] >= 0.25 * j['runs'] / $jobs" ||
    fail "the seconds of a resumed diagnosis are only those since it was resumed"
  [ "$(result cut$jobs)" = "$(result whole$jobs)" ] || {
    fail "$jobs at once: the result differs after resuming"
    diff <(result whole$jobs) <(result cut$jobs) >&2 || true
  }
  # With several jobs, do not compare the number: runs in parallel to the one that reproduces the bug may or may not end
  # before they are stopped.
  [ $jobs -gt 1 ] || [ "$(runs cut$jobs)" -eq "$total" ] ||
    fail "$jobs at once: $(runs cut$jobs) runs recorded instead of $total"
  # If the finished diagnosis is resumed once more, it makes no further run.
  total=$(runs cut$jobs)
  diagnose cut$jobs $jobs --resume
  wait $pid || fail "a finished diagnosis does not resume"
  [ "$(runs cut$jobs)" -eq "$total" ] || fail "a finished diagnosis made further runs"
done

config=rose.toml

# After a schedule was found, Ctrl-C is no failure: rose prints what it has, and can continue later.
sed 's/confirm_runs = 4/confirm_runs = 40/' rose.toml > longer.toml
config=longer.toml
diagnose enough 1
config=rose.toml
until_true 120 eval "ended || grep -q 'confirmed: ' enough.err" || fail "no found schedule is reported"
ended && fail "the diagnosis ended as soon as it had found a schedule"
# A second diagnosis with the same report folder is refused and leaves the record unchanged.
before=$(runs enough)
expect 2 "$rose" diagnose --trace dump.jsonl -c rose.toml --report enough -o x.toml
says err 'the report folder enough is in use by another rose'
[ "$(runs enough)" -ge "$before" ] || fail "the record of a running diagnosis was removed"
kill -INT $pid
status=0
wait $pid || status=$?
[ $status -eq 0 ] || fail "Ctrl-C after a schedule was found: exit $status instead of 0"
python3 - <<'PY' || fail "Ctrl-C after a schedule was found: the result is not reported"
import json, sys
told = json.load(open("enough.out"))
sys.exit(told["verdict"] != "reproduced" or not any("interrupted" in note for note in told["notes"]))
PY
grep -q '"\*/three"' enough.toml || fail "Ctrl-C: the schedule that was found does not affect the third file"
diagnose enough 1 --resume
wait $pid || fail "a diagnosis that was interrupted after it had found a schedule does not resume"
[ "$(result enough)" = "$(result whole1)" ] || fail "the result differs after Ctrl-C once a schedule was found"

# The record of another system is refused. Other differences are accepted.
sed 's/"0.3"/"0.4"/' rose.toml > other.toml
expect 2 "$rose" diagnose --trace dump.jsonl -c other.toml --report whole1 --resume -o x.toml
says err 'workload'
sed 's/max_runs = 60/max_runs = 50/' rose.toml > fewer.toml
expect 0 "$rose" diagnose --trace dump.jsonl -c fewer.toml --report whole1 --resume -o x.toml
# A damaged line costs only one run, and not the whole record.
sed -i '2s/.*/{"number":2,/' whole1/record.jsonl
expect 0 "$rose" diagnose --trace dump.jsonl -c rose.toml --report whole1 --resume -o x.toml
says err 'record.jsonl:2: not a record of a run'
nothing_left "in the end"
