#!/usr/bin/env bash
# Tests `block` faults, which hold a thread. The schedule of examples/race reproduces its bug in ten of ten runs. With
# the same fault at an earlier function, no run reproduces it. No thread stays held or traced after rose was interrupted
# or killed.
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"
. "$(dirname "${BASH_SOURCE[0]}")/example.bash"
begin race
sed -i "s#../../build/release#$build#" rose.toml

# --- the same order of threads in each run
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 10 --json
json_is 'j["verdict"]' reproduced
json_is 'j["reproduced"]' "$(json 'j["runs"]')"
json_is '[(f["requested"] == f["fired"]) for f in j["faults"]]' '[True]'

# --- a thread that waits at an earlier function, before the check, does no harm
sed 's/"pay"/"balance"/; s/^until.*/duration = "1s"/' schedule.toml > early.toml
expect 1 "$rose" replay early.toml -c rose.toml --runs 2 --json
json_is 'j["reproduced"]' 0

# --- rose ends, and no thread stays held
cat > workload.sh <<'SH'
#!/bin/sh
touch bank/open
cp "$ROSE_PIDFILE_bank" began.new && mv began.new began
sleep 600
SH
sed 's/^until.*/duration = "600s"/' schedule.toml > long.toml
holders() { pgrep -x rose-holder -P "$pid" || true; }
threads_held() { grep -h '^State:.*tracing stop' /proc/"$bank"/task/*/status 2>/dev/null; }
threads_traced() { grep -h '^TracerPid:' /proc/"$bank"/task/*/status 2>/dev/null | grep -v '	0$'; }
not() { ! "$@"; }
begun() {
  rm -rf report
  "$rose" replay long.toml -c rose.toml --runs 1 --report report 2>err >out &
  pid=$!
  until_true 60 test -s report/runs/run-0001/began || { cat err >&2; exit 1; }
  bank=$(cat report/runs/run-0001/began)
  until_true 60 threads_held || fail "no thread is held"
  holder=$(holders)
  [ -n "$holder" ] || fail "the process that holds the thread was not found"
}

begun
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
until_true 30 not threads_traced || fail "still traced after kill -9"
until_true 30 grep -q '^left' report/runs/run-0001/bank/stdout.log ||
  fail "the held thread did not continue after kill -9"
until_true 30 not test -e "/proc/$holder" || fail "rose-holder is left after kill -9"
expect 0 "$rose" heal

begun
kill -INT "$pid"
wait "$pid" 2>/dev/null || true
[ ! -e "/proc/$holder" ] || fail "rose-holder is left after Ctrl-C"
[ ! -e "/proc/$bank" ] || fail "the node is left after Ctrl-C"
nothing_left "the runs"
