#!/usr/bin/env bash
# Tests examples/kv/snapshot-enospc, in which a system call on one file fails, and also a fault that never fires.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/example.bash"
begin kv/snapshot-enospc
whole_path '"node":"n2","type":"scf".*"syscall":"write","errno":"ENOSPC".*snapshot-[0-9]+\.tmp"' syscall found
cp "$work/schedule.toml" "$work/out"
says out '^node *= *"n2"'
says out '^error *= *"ENOSPC"'

# If the call of a fault is never made, the result is inconclusive, and the message names the fault.
cat > "$work/never.toml" << 'END'
version = 1
name = "never"
[[fault]]
id = "write-to-nowhere"
kind = "syscall"
node = "n2"
syscall = "write"
error = "ENOSPC"
path = "*/no-such-file-*"
END
step 4 "$rose" replay "$work/never.toml" -c rose.toml --runs 1 --json
json_is 'j["verdict"]' inconclusive
json_is '[(f["id"], f["requested"], f["fired"]) for f in j["faults"]]' "[('write-to-nowhere', 1, 0)]"
says err 'write-to-nowhere'

if grep -q "^rose-snapshots " /proc/mounts; then fail "the incident's tmpfs is still mounted"; fi
