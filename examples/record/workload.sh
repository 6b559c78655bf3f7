#!/bin/sh
# Eight clients count together until a node fails, for five minutes at most. Usage: workload.sh KV-CLIENT
set -u
client=$1
kv() { "$client" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" "$@"; }

kv --timeout 20 settle || exit 1
clients=""
for number in 1 2 3 4 5 6 7 8; do
  "$client" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" --op swap --seconds 300 \
    --interval-ms 0 load > "client-$number.txt" &
  clients="$clients $!"
done
tries=0
while ! grep -q 'assertion failed' n?/stderr.log && [ "$tries" -lt 3000 ]; do
  tries=$((tries + 1))
  sleep 0.1
done
# shellcheck disable=SC2086
kill $clients 2> /dev/null
wait
exit 0
