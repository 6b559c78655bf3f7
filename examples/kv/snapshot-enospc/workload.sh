#!/bin/sh
# Writes enough for one snapshot, stops n2 cleanly and restarts it, as for an upgrade, and writes a little more.
# Usage: workload.sh KV-CLIENT
set -eu
client=$1
kv() { "$client" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" "$@"; }

kv --timeout 20 settle
kv --count 250 --interval-ms 6 --acked acked.txt load
# Snapshots are taken concurrently with writes. n2 must have taken its snapshot, saved or not, before it is stopped.
kv --timeout 15 reach 2 snapshot 200

"${ROSE_EXE:-rose}" node restart n2
kv --timeout 20 settle
touch restarted

kv --count 20 --interval-ms 6 --prefix late- --acked acked.txt load
