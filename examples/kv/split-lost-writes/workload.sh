#!/bin/sh
# A client that writes for 5 seconds, always to the same node as long as that node acknowledges.
# Usage: workload.sh KV-CLIENT
set -eu
client=$1
kv() { "$client" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" "$@"; }

kv --timeout 20 settle
kv --seconds 5 --interval-ms 20 --acked acked.txt load
