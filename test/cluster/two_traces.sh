#!/usr/bin/env bash
# Two `rose trace -c` in parallel do not disturb each other. Each answers a `rose dump` from inside its run. From
# outside, the one that was started last needs no --control.
. "$(dirname "$0")/common.bash"
cd "$work"
rose=$(realpath "$rose")
export TMPDIR=$work

for one in first second; do
  cat > $one.toml <<TOML
name = "$one"
[deployment]
subnet = "10.91.4.0/24"
[[node]]
name = "$one"
command = ["sleep", "600"]
[workload]
command = ["sh", "-c", "until [ -e $work/$one.enough ]; do sleep 0.05; done"]
timeout = "600s"
[oracle]
command = ["false"]
TOML
  "$rose" trace -c $one.toml -o $one.bin --incident "'$rose' dump -o $work/$one.inside" > $one.out 2> $one.err &
  echo $! > $one.pid
done
for one in first second; do until_true 300 test -s $one.inside; done
for one in first second; do
  expect 0 "$rose" dump show $one.inside --type ps
  says out "$one +.*started"
  if grep -E '(first|second) .*started' out | grep -vq " $one "; then fail "the dump of $one is that of the other"; fi
done
expect 2 "$rose" dump -o which.bin
says err "2 tracers run: .*/trace.sock, .*/trace.sock"
says err 'choose one with --control'
touch first.enough
status=0
wait "$(cat first.pid)" || status=$?
[ $status -eq 1 ] || fail "the first trace ends with $status"
expect 0 "$rose" dump -o outside.bin
expect 0 "$rose" dump show outside.bin --type ps
says out 'second +.*started'
touch second.enough
status=0
wait "$(cat second.pid)" || status=$?
[ $status -eq 1 ] || fail "the second trace ends with $status"
for one in first second; do
  if grep 'another tracer' $one.err; then fail "the two tracers conflict"; fi
done
expect 2 "$rose" dump -o nobody.bin
says err "no tracer is listening at"
nothing_left "in the end"
