#!/bin/sh
# Unmounts the disk if the incident was killed before it could do that.
disk=$ROSE_RUN_DIR/n2/data/snapshots
if mountpoint -q "$disk"; then umount -l "$disk"; fi
