#!/usr/bin/env bash
# Tests the tracer as users run it: triggers by signal, log, crash and oracle, --after, expected failures, the names of
# dumps, and `dump show --summary`.
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"

cd "$work"
tracer=
stop_tracer() {
  [ -n "$tracer" ] || return 0
  kill -INT "$tracer" 2>/dev/null || true
  wait "$tracer" || true
  tracer=
}
ended() {
  stop_tracer; ! mountpoint -q disk || umount -l disk; [ -z "${victim:-}" ] || kill -KILL "$victim" 2>/dev/null ||
    true; finish
}
trap ended EXIT

. "$here/service.bash"
start_service orders
victim=$service
disown

start_tracer() { # OPTIONS...
  : >err.log
  "$rose" trace --pid $victim --control "$work/sock" --json "$@" >out.json 2>err.log &
  tracer=$!
  until_true 60 grep -q 'ready:' err.log
}
say() { echo "$*" >orders; }
shows() { "$rose" dump show "$1" --format jsonl >"$work/out" 2>/dev/null; says out "$2"; }

# --- a log line, and events after it
start_tracer -o log.bin --dump-on-log "$work/db.log:panic|assert" --after 2s
say miss before
echo "all is well" >db.log
mv db.log db.log.1
echo "panic: lost a write" >db.log
until_true 30 grep -q 'the window will be written in 2s' err.log
say miss after
until_true 30 grep -q 'wrote log.bin' err.log
shows log.bin '"trigger":"log: .*db.log: panic: lost a write"'
shows log.bin '/rose-none/before'
shows log.bin '/rose-none/after'
kill -USR1 "$tracer"
until_true 30 grep -q 'signal: SIGUSR1: wrote log.bin' err.log
stop_tracer
cp out.json out
json_is 'len(j["dumps"])' 3
json_is '[d["file"] for d in j["dumps"]]' "['log.bin.2', 'log.bin.1', 'log.bin']"
json_is 'j["dumps"][2]["trigger"]' 'end: interrupted'
shows log.bin.2 '"trigger":"log: '
shows log.bin.1 '"trigger":"signal: SIGUSR1"'

# --- a crash, into a folder
start_tracer -o dumps/ --dump-on-crash --keep-dumps 2
say crash
until_true 30 grep -q 'crash: .* was killed by SIGSEGV: wrote dumps/rose-' err.log
say crash
say miss last
# Succeeds once the tracer has recorded the events after the second crash.
holds_last() {
  rm -f asked.bin && "$rose" dump --control "$work/sock" -o asked.bin && "$rose" dump show asked.bin --format jsonl |
    grep -q '/rose-none/last'
}
until_true 60 holds_last
shows asked.bin '"trigger":"control: rose dump"'
stop_tracer
cp out.json out
json_is 'j["left_out"]' 1
json_is 'len(j["dumps"])' 2
[ "$(find dumps -name 'rose-*-crash.bin' | wc -l)" = 1 ] || fail "no dump of the crash in $(ls dumps)"
[ "$(find dumps -name 'rose-*-end.bin' | wc -l)" = 1 ] || fail "no last dump in $(ls dumps)"

# --- an oracle
start_tracer -o oracle.bin --dump-when 'test -e bug' --dump-every 100ms
touch bug
until_true 30 grep -q 'oracle: test -e bug: wrote oracle.bin' err.log
stop_tracer
shows oracle.bin.1 '"trigger":"oracle: test -e bug"'
start_tracer -o unclear.bin --dump-when 'echo what is this >&2; exit 9' --dump-every 50ms
until_true 30 grep -q "did not decide: it exited with status 9 and printed 'what is this'" err.log
stop_tracer
cp out.json out
json_is 'j["oracle"]["hits"]' 0
[ "$(grep -c 'did not decide' err.log)" = 1 ] || fail "an unclear oracle is reported more than once"

# --- a command that fails
expect 0 "$rose" trace --control "$work/sock" -o cmd.bin --dump-on-crash --json -- bash -c 'exit 5'
json_is 'j["dumps"][-1]["trigger"]' "crash: 'bash' exited with status 5"

# --- expected failures
start_tracer -o noise.bin --noise 'open*:ENOENT' --noise -poll:EINTR
say miss quiet
say miss quiet
until_true 30 bash -c "'$rose' dump --control '$work/sock' -o now.bin -q && '$rose' dump show now.bin --summary | grep -q 'openat ENOENT x'"
stop_tracer
"$rose" dump show noise.bin --format jsonl | grep -q rose-none && fail "an expected failure was recorded"
expect 0 "$rose" trace --noise list --noise '*:ENOENT'
says out '^ENOENT: read write open'
expect 2 "$rose" trace --noise opneat:ENOENT --pid $victim
says err "did you mean 'openat'"

# --- summaries
expect 0 "$rose" dump show log.bin --summary
says out 'openat ENOENT /rose-none/after'
says out '^# written by end: interrupted'
expect 0 "$rose" dump show log.bin.2 --summary --json
json_is '[r["count"] for r in j["rows"] if r.get("path") == "/rose-none/after"]' '[1]'
json_is 'j["profile"]' None
expect 2 "$rose" dump show log.bin --profile none.json
says err 'profile needs --summary'

# --- a later tracer does not overwrite the dump of an earlier one
start_tracer -o log.bin
say miss later
stop_tracer
shows log.bin.1 '/rose-none/after'

# --- the last dump on a full disk: it is written once there is space, or given up after another Ctrl-C
mkdir disk
mount -t tmpfs -o size=1m rose-test disk
for end in room ctrl-c; do
  start_tracer -o disk/last.bin
  say miss last
  dd if=/dev/zero of=disk/filler bs=4k 2>/dev/null && fail "dd filled nothing"
  kill -INT "$tracer"
  until_true 30 grep -q 'trying again for 1m, or until Ctrl-C' err.log
  says err.log 'No space left on device'
  if [ $end = room ]; then rm disk/filler; else kill -INT "$tracer"; fi
  status=0
  wait "$tracer" || status=$?
  tracer=
  if [ $end = room ]; then
    [ $status = 0 ] || fail "the last dump was not written: $(tail -3 err.log)"
    shows disk/last.bin '/rose-none/last'
    mv disk/last.bin kept.bin
  else
    [ $status != 0 ] || fail "a dump on a full disk is reported as written"
    [ ! -e disk/last.bin ] || fail "there is a dump on a full disk"
  fi
done
umount disk

# --- options that contradict each other give one message
expect 2 "$rose" dump bogus
says err "there is no command 'dump bogus'"
says err 'show, merge, import'
expect 2 "$rose" dump shwo
says err "did you mean 'show'"
expect 2 "$rose" trace --pid $victim --dump-every 1s
says err 'dump-every needs --dump-when'
expect 2 "$rose" trace --pid $victim --dump-cooldown 1s
says err 'dump-cooldown needs'
expect 2 "$rose" trace --pid $victim --dump-on-log 'x:('
says err 'is not a regular expression'
expect 2 "$rose" trace --pid $victim --after 10s --duration 5s
says err 'not shorter than'
: >empty.bin
expect 2 "$rose" dump show empty.bin
nothing_left "by the tracers"
