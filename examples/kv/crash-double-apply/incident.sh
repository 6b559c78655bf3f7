#!/bin/sh
# n3 is killed in the middle of its work, as the OOM killer would do it.
set -eu

tries=400
while [ "$(cat acked.txt 2>/dev/null | wc -l)" -lt 300 ] || ! grep -q 'snapshot of entry .* saved' n3/stderr.log; do
  tries=$((tries - 1))
  if [ "$tries" -le 0 ]; then echo "incident: the work does not get on" >&2; exit 1; fi
  sleep 0.1
done
kill -9 "$(cat "$ROSE_PIDFILE_n3")"
