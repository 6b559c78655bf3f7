#!/usr/bin/env bash
# examples/kv/crash-double-apply: a killed process.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/example.bash"
begin kv/crash-double-apply
whole_path '"node":"n3","type":"ps".*"state":"crashed","signal":"SIGKILL"' crash confirmed
cp "$work/schedule.toml" "$work/out"
says out '^node *= *"n3"'
