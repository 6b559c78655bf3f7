#!/bin/sh
# The disk for n2's snapshots is small, and another file has filled it; later there is space again.
set -eu
disk=$ROSE_RUN_DIR/n2/data/snapshots

clean_up() { if mountpoint -q "$disk"; then umount -l "$disk"; fi; }
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# wait_for SECONDS COMMAND...: waits until the command succeeds
wait_for() {
  tries=$(($1 * 10)); shift
  while ! "$@"; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then echo "incident: waited in vain for: $*" >&2; exit 1; fi
    sleep 0.1
  done
}

wait_for 20 test -d "$disk"
mount -t tmpfs -o size=64k rose-snapshots "$disk"
cat /dev/zero > "$disk/somebody-elses-file" 2>/dev/null || true

wait_for 40 grep -q 'not saved' "$ROSE_RUN_DIR/n2/stderr.log"
rm "$disk/somebody-elses-file"

# The disk can be removed once n2 has read its content.
wait_for 40 test -e "$ROSE_RUN_DIR/restarted"
