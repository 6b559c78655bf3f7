#!/bin/sh
# Are acknowledged writes missing on n2, although it reports that it has applied everything?
# Exit status: 0 yes, 1 no, 2 cannot decide. Usage: oracle.sh KV-CLIENT
set -u
client=$1
kv() { "$client" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" "$@"; }

if [ ! -s acked.txt ]; then echo "no write was acknowledged"; exit 2; fi
if ! kv --timeout 10 settle; then echo "the cluster does not come to rest"; kv status; exit 2; fi
kv scan 2 > oracle-n2.txt || exit 2

sort -u acked.txt > oracle-acked.txt
cut -d ' ' -f 1 oracle-n2.txt | sort -u > oracle-keys.txt
missing=$(comm -23 oracle-acked.txt oracle-keys.txt | wc -l)
echo "$(wc -l < oracle-acked.txt) writes acknowledged, $missing of them missing on n2"
[ "$missing" -gt 0 ]
