#!/bin/sh
# Clients add and read while leadership is transferred, until a node fails, for two minutes at most.
set -u
"${XDG_CACHE_HOME:-$HOME/.cache}/rose/bugs/raft-counter/raft-counter" load \
  -nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" -seconds 120 -move 200ms > load.txt &
tries=0
while ! grep -q '^panic: ' n?/stderr.log && [ "$tries" -lt 1200 ]; do
  tries=$((tries + 1))
  sleep 0.1
done
kill $! 2> /dev/null
wait
exit 0
