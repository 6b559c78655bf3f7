#!/usr/bin/env bash
# examples/redis-sentinel: a partition of a system that rose was not written for.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/example.bash"
for need in redis-server redis-sentinel redis-cli; do
  command -v "$need" > /dev/null || skip "$need is missing (examples/redis-sentinel/install.sh installs it)"
done
begin redis-sentinel 3
whole_path '"type":"nd","src":"10\.77\.4\.[1-3]","dst":"10\.77\.4\.[1-3]"' partition 1
cp "$work/schedule.toml" "$work/out"
says out '^node *= *"n1"'
