#!/usr/bin/env bash
# Tests examples/bugs/redis-sentinel, a partition in a system that was not used in the development of rose.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/example.bash"
for need in redis-server redis-sentinel redis-cli; do
  command -v "$need" > /dev/null || skip "$need is missing (examples/bugs/redis-sentinel/install installs it)"
done
begin bugs/redis-sentinel
whole_path '"type":"nd","src":"10\.86\.4\.[1-3]","dst":"10\.86\.4\.[1-3]"' partition found 2
cp "$work/schedule.toml" "$work/out"
says out '^node *= *"n1"'
