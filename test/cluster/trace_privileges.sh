#!/usr/bin/env bash
# rose trace without root. Three capabilities are enough, each missing one is named, and every thread drops the
# capabilities that are not needed after attaching. Root drops them, too.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/tracing.bash"
command -v setpriv >/dev/null || skip "setpriv (util-linux) is missing"
cd "$work"
make_cgroup "rose-privileges-$$"
cp "$rose" "$build/test/programs/trace_victim" .
chmod 755 rose trace_victim
rose=$work/rose
mkdir own
chown nobody: own
with() {
  as=(setpriv --reuid=nobody --regid=nogroup --clear-groups --bounding-set="-all$1" --inh-caps="-all$1" \
    --ambient-caps="-all$1")
}
# caps PID FIELD: prints the distinct values that a field of /proc/PID/status, such as CapEff, has in all threads.
caps() { cat /proc/"$1"/task/*/status | awk -v want="$2" '$1 == want ":" { print $2 }' | sort -u | tr '\n' ' '; }
is() { local got; got=$(caps "$tracer" "$1"); [ "$got" = "$2 " ] || fail "$1 of the tracer's threads is $got, not $2"; }
all=,+bpf,+perfmon,+net_admin

with "$all"
control=$work/own/control.sock
dump() { "${as[@]}" "$rose" dump --control "$control" -o "$work/own/now.bin"; }
# The user nobody may not write to $work, the folder of -o.
expect 2 "${as[@]}" "$rose" trace --cgroup "$cgroup2/rose-privileges-$$" --control "$control" -o "$work/dump.bin"
out=$work/own/dump.bin
start_trace --cgroup "$cgroup2/rose-privileges-$$" --binary "$work/trace_victim" --function rose_victim_rare
[ "$(ps -o user= -p $tracer)" = nobody ] || fail "the tracer runs as $(ps -o user= -p $tracer)"
fail_in "rose-privileges-$$" /rose-nobody
sh -c 'echo 0 > "$1/cgroup.procs" && echo go | exec "$2" functions 2' sh "$cgroup2/rose-privileges-$$" \
  "$work/trace_victim" >/dev/null || fail "the victim failed"
# CAP_NET_ADMIN (12) is needed to follow restarts, and CAP_PERFMON (38) to attach hot functions again.
for set in CapEff CapPrm; do is $set 0000004000001000; done
for set in CapInh CapAmb; do is $set 0000000000000000; done
is NoNewPrivs 1
# When the target is restarted, it gets another cgroup id. The tracer finds it without the privileges that it dropped.
echo 1 > "$cgroup2/rose-privileges-$$/cgroup.kill"
remove_cgroup "rose-privileges-$$"
make_cgroup "rose-privileges-$$"
fail_in "rose-privileges-$$" /rose-again
expect 0 dump
stop_trace
has "$(hostname)" /rose-nobody
has "$(hostname)" /rose-again
grep -q '"function":"rose_victim_rare"' events || fail "no function was recorded"
! grep -q warning trace.err || fail "warned: $(grep warning trace.err)"

# If the target is a process, no privilege is needed after attaching.
sleep 1000 & sleeper=$!
start_trace --pid $sleeper
for set in CapEff CapPrm CapInh CapAmb; do is $set 0000000000000000; done
expect 0 dump
# A second later, the tracer searches for the target's sockets again, without any privilege.
until_true 60 grep -q 'searched for sockets again' trace.err || fail "sockets were not searched for again"
stop_trace
! grep -q warning trace.err || fail "warned: $(grep warning trace.err)"
kill $sleeper

# Each missing capability is named, before anything is loaded.
with "${all/,+bpf/}"
expect 3 "${as[@]}" "$rose" trace --pid $$ -o "$out"
says err 'needs CAP_BPF \(to load programs into the kernel\)$'
says err 'setcap cap_bpf\+ep'
with "${all/,+perfmon/}"
expect 3 "${as[@]}" "$rose" trace --pid $$ -o "$out"
says err 'needs CAP_PERFMON \([^,]*\)$'
with "${all/,+net_admin/}"
expect 3 "${as[@]}" "$rose" trace --pid $$ -o "$out"
says err 'needs CAP_NET_ADMIN \([^,]*\)$'
with ""
expect 3 "${as[@]}" "$rose" trace --pid $$ -o "$out"
says err 'needs CAP_BPF .*, CAP_PERFMON .*, CAP_NET_ADMIN '
# If a program cannot be read, the message names it.
with "$all"
chmod 711 trace_victim
status=0
"${as[@]}" "$rose" trace --pid $$ --binary "$work/trace_victim" --function rose_victim_rare -o "$out" >out 2>err ||
  status=$?
[ $status -ne 0 ] || fail "functions of an unreadable program were traced"
says err 'trace_victim'
says err '[Pp]ermission denied'

# Root drops the same capabilities. It keeps one more, to write to another user's folder.
as=()
out=$work/dump.bin control=$work/control.sock
start_trace --cgroup "$cgroup2/rose-privileges-$$"
for set in CapEff CapPrm CapBnd; do is $set 0000000000001000; done
says trace.err 'capabilities kept: CAP_NET_ADMIN$'
stop_trace
out=$work/own/root.bin
start_trace --cgroup "$cgroup2/rose-privileges-$$"
is CapEff 0000000000001002
stop_trace
# A command that the tracer runs keeps root's privileges.
full=$(awk '$1 == "CapEff:" { print $2 }' /proc/self/status)
expect 0 "$rose" trace -o "$work/cmd.bin" -- grep "^CapEff:.*$full" /proc/self/status
says out "$full"
