#!/bin/sh
# Writes a, makes the server save it, and writes b as the step "asked", that is, when the schedule's order allows this
# step. Then it waits until the server was restarted, and reads b.
set -u
redis="redis-cli -h $ROSE_IP_redis"
before=$("$ROSE_EXE" node status redis)
$redis SET a 1
$redis BGSAVE
"$ROSE_EXE" step asked -- $redis SET b 2
for i in $(seq 50); do
  [ "$("$ROSE_EXE" node status redis)" != "$before" ] && [ "$($redis GET a 2>/dev/null)" = 1 ] && break
  sleep 0.1
done
if [ "$($redis GET b)" = 2 ]; then echo "b is there"; else echo "b is lost"; fi > answer.txt
