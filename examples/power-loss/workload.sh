#!/bin/sh
# Writes until the server has ended, waits until it is back, and checks that all acknowledged writes are there.
set -u
redis="redis-cli -h $ROSE_IP_redis"
before=$("$ROSE_EXE" node status redis)
acknowledged=0
for i in $(seq 2000); do
  [ "$($redis SET "key$i" "$i" 2>/dev/null)" = OK ] || break
  acknowledged=$i
done
for i in $(seq 50); do
  [ "$("$ROSE_EXE" node status redis)" != "$before" ] && [ "$($redis PING 2>/dev/null)" = PONG ] && break
  sleep 0.1
done
for i in $(seq "$acknowledged"); do
  [ "$($redis GET "key$i")" = "$i" ] || lost="${lost:-} key$i"
done
if [ -n "${lost:-}" ]; then echo "lost:$lost"; else echo "all $acknowledged are there"; fi > answer.txt
