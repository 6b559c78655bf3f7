#!/usr/bin/env bash
# With the default jobs = "auto", diagnose measures how many runs may be made in parallel. --stop-after ends the
# diagnosis early. Runs that share a file are made one at a time.
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
sleep 0.3
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
command = ["/bin/sh", "./rounds.sh"]
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

# check FILE EXPRESSION: evaluates the expression for the JSON object j.
check() { python3 -c "import json, sys; j = json.load(open('$1')); sys.exit(0 if ($2) else 1)"; }

# With the measured number of jobs, the whole diagnosis has the same result as with one run at a time.
"$rose" diagnose --trace dump.jsonl -c rose.toml --report auto -o auto.toml --json > auto.out 2> auto.err
status=$?
[ $status -eq 0 ] || { fail "jobs = auto: exit $status"; tail -5 auto.err >&2; }
grep -q '"\*/three"' auto.toml || fail "jobs = auto: the schedule does not affect the third file"
grep -q 'parallel runs: [1-8] (' auto.err || fail "jobs = auto: the number is not reported"
grep -q 'first reproduced after ' auto.err || fail "the first reproduction is not reported"
check auto.out '1 <= j["jobs"] <= 8 and 0 < j["first_reproduction_seconds"] <= j["seconds"]' ||
  fail "jobs = auto: $(cat auto.out)"
before=$(wc -l < auto/record.jsonl)
"$rose" diagnose --trace dump.jsonl -c rose.toml --report auto -o again.toml --resume --json > again.out 2> again.err ||
  fail "a finished diagnosis cannot be resumed: $(tail -3 again.err)"
[ "$(wc -l < auto/record.jsonl)" -eq "$before" ] || fail "a finished diagnosis made further runs when it was resumed"
cmp -s auto.toml again.toml || fail "the resumed diagnosis found a different schedule"

# Two faults are tried together, and each of them alone, in parallel. When a run has reproduced the bug, the run with
# the other fault alone is stopped. The workload of that run would never end.
sed -e "s#$work/rounds.sh#$work/waits.sh#" -e 's#timeout = "60s"#timeout = "900s"#' rose.toml > waits.toml
cat > waits.sh <<'SH'
. "$(dirname "$0")/rounds.sh"
while grep -q 'no two' a/broken && ! grep -q 'no three' a/broken; do sleep 0.1; done
SH
{
  head -1 dump.jsonl
  grep -e /two -e /three dump.jsonl
} > two.jsonl
"$rose" diagnose --trace two.jsonl -c waits.toml --jobs 3 --stop-after found --report waits --without survey,ahead \
  -o waits-found.toml > waits.out 2> waits.err || fail "--jobs 3: $(tail -3 waits.err)"
grep -q '"\*/three"' waits-found.toml || fail "--jobs 3: the schedule does not affect the third file"
grep -q ' (and 2 more in parallel)' waits.err || fail "the faults were not tried in parallel: $(cat waits.err)"
grep '/two' waits/record.jsonl | grep -qv /three && fail "the parallel run was not stopped"
[ ! -e waits/runs/run-0004 ] || fail "the stopped run left its folder"

# Runs that the search will probably request next are made in parallel to those that it has requested. To test this, the
# control run ends only when another run has begun.
cat > meets.sh <<SH
touch "$work/begun.\$ROSE_RUN"
until [ \$(ls "$work" | grep -c '^begun') -ge 2 ]; do sleep 0.05; done
. "$work/rounds.sh"
SH
sed "s#$work/rounds.sh#$work/meets.sh#" rose.toml > meets.toml
"$rose" diagnose --trace dump.jsonl -c meets.toml --jobs 2 --stop-after found --report meets -o meets-found.toml \
  > meets.out 2> meets.err || fail "runs made ahead: $(tail -3 meets.err)"
grep -q '"\*/three"' meets-found.toml || fail "runs made ahead: the schedule does not affect the third file"
before=$(wc -l < meets/record.jsonl)
"$rose" diagnose --trace dump.jsonl -c meets.toml --jobs 2 --stop-after found --report meets -o meets-again.toml \
  --resume > meets-again.out 2>&1 || fail "runs made ahead, resumed: $(tail -3 meets-again.out)"
[ "$(wc -l < meets/record.jsonl)" -eq "$before" ] || fail "a resumed search made runs ahead again"
cmp -s meets-found.toml meets-again.toml || fail "runs made ahead: the resumed search found a different schedule"

# The workload uses all processors, so few runs are made in parallel. But when the bug has occurred, the workload only
# waits: for some seconds, or until a further run has begun. So some of the runs that confirm the schedule must overlap
# with the next one.
cat > idles.sh <<SH
touch "$work/came.\$ROSE_RUN"
. "$work/rounds.sh"
for i in \$(seq \$(nproc)); do timeout 1 sh -c 'while :; do :; done' & done
wait
grep -q 'no three' a/broken || exit 0
came=\$(ls "$work" | grep -c '^came')
for i in \$(seq 80); do
  [ \$(ls "$work" | grep -c '^came') -eq \$came ] || { touch "$work/met.\$ROSE_RUN"; exit 0; }
  sleep 0.1
done
SH
sed -e "s#$work/rounds.sh#$work/idles.sh#" -e 's#confirm_runs = 4#&\ntarget_rate = 0.5#' rose.toml > idles.toml
"$rose" diagnose --trace dump.jsonl -c idles.toml --stop-after confirmed --report idles -o idles-found.toml --json \
  > idles.out 2> idles.err || fail "runs that only wait: $(tail -3 idles.err)"
# On a busy machine, rose may find that runs disturb each other. On a machine with many processors, all confirming runs
# start at once.
if ! grep -q 'from now on' idles.err && check idles.out 'j["jobs"] < 3'; then
  ls | grep -q '^met' || fail "runs that only wait do not overlap: $(ls | grep '^came'); $(grep 'parallel' idles.err)"
fi
before=$(wc -l < idles/record.jsonl)
"$rose" diagnose --trace dump.jsonl -c idles.toml --stop-after confirmed --report idles -o idles-again.toml --resume \
  > idles-again.out 2>&1 || fail "runs that only wait, resumed: $(tail -3 idles-again.out)"
[ "$(wc -l < idles/record.jsonl)" -eq "$before" ] || fail "further runs were made when runs that wait were resumed"

# --stop-after found ends the diagnosis after the first reproduction.
"$rose" diagnose --trace dump.jsonl -c rose.toml --jobs 1 --stop-after found -o found.toml \
  --json > found.out 2> found.err
status=$?
[ $status -eq 0 ] || fail "--stop-after found: exit $status"
check found.out 'j["verdict"] == "reproduced" and j["rate"] is None and j["confirm_runs"] == 0' ||
  fail "--stop-after found: $(cat found.out)"
grep -q '"\*/three"' found.toml || fail "--stop-after found: the schedule does not affect the third file"

# Nodes of different runs write to the same file of the machine.
sed "s#touch rounds ready#&; echo x > $work/shared#" node.sh > sharing.sh
sed "s#/node.sh#/sharing.sh#" rose.toml > sharing.toml
"$rose" diagnose --trace dump.jsonl -c sharing.toml --stop-after found -o sharing-found.toml \
  --json > sharing.out 2> sharing.err ||
  fail "nodes that share a file: $(tail -3 sharing.err)"
grep -q "parallel runs: 1 (a writes $work/shared in every run)" sharing.err ||
  fail "the shared file is not detected: $(grep 'parallel' sharing.err)"

expect 2 "$rose" replay found.toml -c rose.toml --jobs some
expect 0 "$rose" replay found.toml -c rose.toml --runs 2 --jobs auto --json

nothing_left "in the end"
