#!/bin/sh
# Adds 1 to five counters in turn, 600 times in all. Usage: workload.sh KV-CLIENT
set -eu
client=$1
kv() { "$client" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" "$@"; }

kv --timeout 20 settle
kv --op add --keys 5 --count 600 --interval-ms 6 --acked acked.txt load
