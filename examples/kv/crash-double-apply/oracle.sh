#!/bin/sh
# Do nodes that have applied the same entries hold different counters?
# Exit status: 0 yes, 1 no, 2 cannot decide. Usage: oracle.sh KV-CLIENT
set -u
client=$1
kv() { "$client" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" "$@"; }

if [ ! -s acked.txt ]; then echo "no write was acknowledged"; exit 2; fi
if ! kv --timeout 10 settle; then echo "the cluster does not come to rest"; kv status; exit 2; fi
for node in 1 2 3; do kv scan "$node" > "oracle-n$node.txt" || exit 2; done

if cmp -s oracle-n1.txt oracle-n2.txt && cmp -s oracle-n1.txt oracle-n3.txt; then
  echo "all nodes hold the same counters"
  exit 1
fi
echo "the counters of n1, n2 and n3:"
paste -d ' ' oracle-n1.txt oracle-n2.txt oracle-n3.txt
