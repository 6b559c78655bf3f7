#!/usr/bin/env bash
# Tests examples/kv/crash-double-apply, in which a process is killed.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/example.bash"
begin kv/crash-double-apply
whole_path '"node":"n3","type":"ps".*"state":"crashed","signal":"SIGKILL"' crash confirmed
cp "$work/schedule.toml" "$work/out"
says out '^node *= *"n3"'
