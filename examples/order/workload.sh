#!/bin/sh
# Writes a, has it saved, and writes b as the step "asked", when the schedule's order allows it. Then it waits for the
# server to be restarted, and reads b.
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
