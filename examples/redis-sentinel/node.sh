#!/bin/bash
# One host: a Redis server and a Sentinel, in the foreground; when one ends, so does the other.
# The first address is the first primary's. Usage: node.sh OWN-IP IP,IP,IP
set -u
ip=$1
primary=${2%%,*}

# Redis and Sentinel keep what they learn in these files, so a restarted node goes on where it was.
if [ ! -e redis.conf ]; then
  cat > redis.conf << END
bind $ip
port 6379
protected-mode no
dir $PWD
save ""
appendonly no
repl-diskless-sync yes
repl-diskless-sync-delay 0
END
  if [ "$ip" != "$primary" ]; then echo "replicaof $primary 6379" >> redis.conf; fi
fi
new_sentinel=
if [ ! -e sentinel.conf ]; then
  new_sentinel=yes
  cat > sentinel.conf << END
bind $ip
port 26379
protected-mode no
dir $PWD
sentinel monitor cache $primary 6379 2
sentinel down-after-milliseconds cache 3000
sentinel failover-timeout cache 3000
sentinel parallel-syncs cache 2
END
fi

server=
sentinel=
stop() { kill ${server:+"$server"} ${sentinel:+"$sentinel"} 2> /dev/null; }
trap 'stop; wait; exit 0' TERM INT

redis-server redis.conf > redis.log 2>&1 &
server=$!

# A Sentinel looks for replicas when it first meets the primary, and then only every ten seconds: let there be some.
if [ -n "$new_sentinel" ]; then
  for _ in {1..100}; do
    if redis-cli -h "$primary" info replication 2> /dev/null | grep -q '^connected_slaves:2'; then break; fi
    sleep 0.1
  done
fi
redis-sentinel sentinel.conf > sentinel.log 2>&1 &
sentinel=$!

wait -n "$server" "$sentinel"
status=$?
echo "node.sh: one of the two ended with status $status" >&2
stop
wait
exit 1
