#!/bin/sh
# Are acknowledged writes missing on every node of the cluster, now that it is healed and idle?
# Exit status: 0 yes, 1 no, 2 cannot decide. Usage: oracle.sh KV-CLIENT
set -u
client=$1
kv() { "$client" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" "$@"; }

if [ ! -s acked.txt ]; then echo "no write was acknowledged"; exit 2; fi
if ! kv --timeout 10 settle; then echo "the cluster does not come to rest"; kv status; exit 2; fi
for node in 1 2 3; do kv scan "$node" > "oracle-n$node.txt" || exit 2; done

sort -u acked.txt > oracle-acked.txt
cat oracle-n1.txt oracle-n2.txt oracle-n3.txt | cut -d ' ' -f 1 | sort -u > oracle-keys.txt
gone=$(comm -23 oracle-acked.txt oracle-keys.txt | wc -l)
echo "$(wc -l < oracle-acked.txt) writes acknowledged, $gone of them gone"
[ "$gone" -gt 0 ]
