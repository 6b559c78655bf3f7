#!/usr/bin/env bash
# If a result cannot be printed, the exit code reports this. If a standard descriptor is closed, no file of rose gets
# its number. A write that exceeds the limit on the size of files is an error, after which rose still cleans up.
. "$(dirname "$0")/common.bash"
cd "$work"
export TMPDIR=$work
cat > rose.toml <<'TOML'
name = "streams"
[[node]]
name = "n1"
command = ["/bin/sleep", "1000"]
[workload]
command = ["/bin/true"]
[oracle]
command = ["/bin/false"]
TOML
printf 'version = 1\n[[fault]]\nid = "f"\nnode = "n1"\nkind = "pause"\nduration = "10ms"\n' > s.toml
replay() { "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --no-stacks "$@"; }

# full STATUS COMMAND...: runs the command with stdout on a full device.
full() {
  local wanted=$1 status=0
  shift
  "$@" > /dev/full 2> err || status=$?
  [ $status -eq "$wanted" ] || fail "exit $status instead of $wanted with a full stdout: $*"
  [ "$wanted" = 0 ] || says err 'cannot write the result to stdout: No space left on device'
}
full 2 replay
full 2 replay --json
full 2 "$rose" --help
full 2 "$rose" doctor --json
# A reader that closes the pipe early is no error.
status=0
replay 2> err | true || status=${PIPESTATUS[0]}
[ $status -eq 0 ] || fail "exit $status when the reader has closed the pipe: $(cat err)"
# If another process made the pipe non-blocking, the whole result still arrives.
python3 - "$rose" <<'PY' || fail "a result in a non-blocking pipe is cut"
import os, subprocess, sys
read, write = os.pipe()
os.set_blocking(write, False)
import fcntl
fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
command = subprocess.Popen([sys.argv[1], "help", "--json"], stdout=write)
os.close(write)
text = b""
while part := os.read(read, 1000):
    text += part
import json
json.loads(text)
sys.exit(command.wait())
PY

# The workload looks at the standard descriptors of its parent, which is rose. Each is unchanged or, if it was closed,
# the null device.
look='for n in 0 1 2; do readlink /proc/$PPID/fd/$n; done > '"$work/seen"
sed -i 's|^command = ."/bin/true".*|command = ["/bin/sh", "-c", "'"$look"'"]|' rose.toml
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
  status=0
  eval "replay < rose.toml > out 2> err $closed" || status=$?
  [ $status -eq 0 ] || fail "exit $status with $closed"
  ! grep -vE "^(/dev/null|$work/(rose.toml|out|err))\$" seen ||
    fail "rose uses standard descriptors for other files with $closed"
done
nothing_left "with closed descriptors"

# The size of files is limited.
for blocks in 0 4; do
  status=0
  (ulimit -f $blocks && replay --report limited) > out 2> err || status=$?
  [ $status -ne 0 ] && [ $status -lt 128 ] || fail "exit $status with files of at most $blocks blocks: $(cat err)"
done
nothing_left "with a limit on the size of files"
