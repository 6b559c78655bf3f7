#!/usr/bin/env bash
# The tracer is killed (-9). Nothing stays attached or loaded. Only the socket file is left, and the next start takes it
# over.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/tracing.bash"
cd "$work"
make_cgroup "rose-killed-$$"

# held PID: prints the kernel's ids of the programs, maps and links that the process holds. there.py prints which of
# them still exist.
held() { sed -nE 's/^(prog_id|map_id|link_id):\s*([0-9]+)$/\1 \2/p' /proc/"$1"/fdinfo/* 2>/dev/null | sort -u; }
cat > there.py <<'PY'
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
commands = {"prog_id": 13, "map_id": 14, "link_id": 30}  # BPF_*_GET_FD_BY_ID
for line in sys.stdin:
    kind, number = line.split()
    attr = ctypes.create_string_buffer(struct.pack("=IIII", int(number), 0, 0, 0) + bytes(112))
    if libc.syscall(321, commands[kind], attr, 128) >= 0 or ctypes.get_errno() != 2:
        print(kind, number)
PY
nothing_there() { [ -z "$(python3 there.py < held)" ]; }

start_trace --cgroup "$cgroup2/rose-killed-$$"
held $tracer > held
[ "$(wc -l < held)" -gt 20 ] || fail "the tracer holds only $(wc -l < held) programs, maps and links"
[ -n "$(python3 there.py < held)" ] || fail "programs that stay loaded cannot be detected, so the test proves nothing"
before=$(ls -A "$work")
kill -KILL $tracer
wait $tracer 2>/dev/null || true
until_true 20 nothing_there || true
[ -S "$work/control.sock" ] || fail "the socket file was removed"
after=$(ls -A "$work")
[ "$after" = "$before" ] || fail "files were created or removed: $after, before: $before"

start_trace --cgroup "$cgroup2/rose-killed-$$"
fail_in "rose-killed-$$" /rose-after
expect 0 "$rose" dump --control "$work/control.sock" -o now.bin
stop_trace
has "$(hostname)" /rose-after
