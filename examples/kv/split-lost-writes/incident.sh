#!/bin/sh
# Routing between n1 and the other two breaks for 4 seconds, in both directions; clients still reach all three.
set -u

# routes add|del: adds or deletes, in each node, the blackhole routes to the other side
routes() {
  ip netns exec "$ROSE_NETNS_n1" ip route "$1" blackhole "$ROSE_IP_n2/32"
  ip netns exec "$ROSE_NETNS_n1" ip route "$1" blackhole "$ROSE_IP_n3/32"
  ip netns exec "$ROSE_NETNS_n2" ip route "$1" blackhole "$ROSE_IP_n1/32"
  ip netns exec "$ROSE_NETNS_n3" ip route "$1" blackhole "$ROSE_IP_n1/32"
}

tries=400
while [ "$(cat acked.txt 2>/dev/null | wc -l)" -lt 25 ]; do
  tries=$((tries - 1))
  if [ "$tries" -le 0 ]; then echo "incident: the work does not get on" >&2; exit 1; fi
  sleep 0.1
done

# If this script is interrupted, it removes the routes again.
trap 'routes del 2>/dev/null; exit 1' HUP INT TERM
routes add
sleep 4 &
wait $!
routes del
