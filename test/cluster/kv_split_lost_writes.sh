#!/usr/bin/env bash
# Tests examples/kv/split-lost-writes, in which a partition occurs.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/example.bash"
begin kv/split-lost-writes
whole_path '"type":"nd","src":"10\.77\.3\.[1-3]","dst":"10\.77\.3\.[1-3]"' partition found
cp "$work/schedule.toml" "$work/out"
says out '^node *= *"n1"'
