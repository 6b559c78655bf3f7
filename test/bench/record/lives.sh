#!/usr/bin/env bash
# Records and replays random executions of the store in examples/kv. Usage: lives.sh BUILD [LIVES [SEED]]
set -euo pipefail
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
# The three nodes are on a bridge, in namespaces that disappear with this process.
exec unshare --mount --net --propagation private -- bash -c '
  set -euo pipefail
  mkdir -p /run/netns
  mount -t tmpfs -o mode=755 lives /run/netns
  ip link set lo up
  ip link add bridge type bridge
  ip address add 10.77.9.254/24 dev bridge
  ip link set bridge up
  for n in 1 2 3; do
    ip netns add n$n
    ip link add v$n type veth peer name eth0 netns n$n
    ip link set v$n master bridge up
    ip -n n$n address add 10.77.9.$n/24 dev eth0
    ip -n n$n link set lo up
    ip -n n$n link set eth0 up
  done
  exec "$@"' lives "$here/lives.py" "$build/rose" "$build/examples/kv" "${2:-100}" "${3:-1}"
