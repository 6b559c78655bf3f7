#!/bin/sh
# In case the incident was killed before it could unmount what it had mounted.
disk=$ROSE_RUN_DIR/n2/data/snapshots
if mountpoint -q "$disk"; then umount -l "$disk"; fi
