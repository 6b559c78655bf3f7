# Sourced after common.bash by the tests of workers. A node reads three files. In the dump, all three reads failed, and
# the bug is one of these failures. The result of a search without workers is in $work/here.
mkdir "$work/cfg" "$work/tmp"
cd "$work/cfg"
export TMPDIR=$work/tmp

# The node reads three files repeatedly, and prints which of them it could not read. If it cannot read the second one,
# that is the bug.
cat > node.sh <<'SH'
touch broken
if [ -e "$1/secret.key" ]; then echo "no two" >> broken; fi
for f in one two three; do echo "$f" > $f; done
touch rounds ready
while :; do
  for f in one two three; do { read -r line < $f; } 2>/dev/null || echo "no $f" >> broken; done
  echo >> rounds
  sleep 0.05
done
SH
# The faults of the first schedule fire 500 ms after the workload began. Even on a busy machine, a run lasts until the
# node has read all files after that.
cat > rounds.sh <<'SH'
sleep 0.9
begun=$(wc -l < a/rounds)
until [ $(wc -l < a/rounds) -ge $((begun + 3)) ]; do sleep 0.05; done
SH
touch secret.key
cat > rose.toml <<'TOML'
name = "workers"
[deployment]
subnet = "10.82.9.0/24"
[[node]]
name = "a"
command = ["/bin/sh", "${config_dir}/node.sh", "${config_dir}"]
ready = { command = ["test", "-e", "a/ready"], timeout = "60s" }
[workload]
command = ["/bin/sh", "${config_dir}/rounds.sh"]
timeout = "60s"
[oracle]
command = ["grep", "-q", "no two", "a/broken"]
[diagnose]
max_runs = 60
confirm_runs = 1
target_rate = 0.5
simplify = false
exclude = ["secret.*"]
worker_silence = "5s"
TOML
{
  echo '{"meta":{"version":1,"node":"a","window":1000,"lost":0}}'
  at=0
  for f in one two three; do
    at=$((at + 1))
    echo "{\"ts\":176375520${at}000000000,\"node\":\"a\",\"type\":\"scf\",\"pid\":41,\"tid\":41,\"syscall\":\"openat\",\"errno\":\"EIO\",\"fd\":null,\"path\":\"/srv/a/$f\",\"peer\":null}"
  done
} > dump.jsonl

# diagnose NAME [OPTION...]: runs in the background. Its process id is in $pid.
diagnose() {
  local to=$work/$1
  shift
  "$rose" diagnose --trace dump.jsonl -c rose.toml --report "$to" -o "$to.toml" --json "$@" >"$to.out" 2>"$to.err" &
  pid=$!
}
with_workers() { local to=$1 count=$2; shift 2; diagnose "$to" --engine "'$rose' worker" --workers "$count" "$@"; }
runs() { wc -l < "$work/$1/record.jsonl" 2>/dev/null || echo 0; }
ended() { ! kill -0 "$pid" 2>/dev/null; }
ends_with() {
  local status=0
  wait "$pid" || status=$?
  [ $status -eq "$1" ] || { fail "$2: exit $status instead of $1"; tail -20 "$work/$2.err" >&2; }
}
workers() { cat "/proc/$pid/task/"*/children 2>/dev/null | tr ' ' '\n' | grep . || true; }
# all_gone PID...: checks that all these processes have ended.
all_gone() { local one; for one in "$@"; do if kill -0 "$one" 2>/dev/null; then return 1; fi; done; }
no_folders() { ! ls -d "$work"/tmp/rose-worker-* >/dev/null 2>&1; }
# The part of the result that must be equal. Seconds differ.
result() {
  python3 - "$work/$1.out" "$work/$1.toml" "$work/$1/record.jsonl" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
print([j[k] for k in ("verdict", "level", "schedules", "runs", "confirm_runs", "rate", "interval", "words")])
print(open(sys.argv[2]).read())
for line in open(sys.argv[3]):
    run = json.loads(line)
    print(run["number"], run["fingerprint"], run["verdict"])
PY
}

# unclear: prints the records of inconclusive runs.
unclear() { grep '"verdict": *"inconclusive"' "$work/$1/record.jsonl" || true; }

mv secret.key ..
# Make one run at a time: without workers, parallel runs may disturb each other and would then be repeated.
diagnose here --jobs 1
ends_with 0 here
mv ../secret.key .
grep -q '"\*/two"' "$work/here.toml" || fail "the schedule found does not affect the second file"
total=$(runs here)
