#!/usr/bin/env bash
# Rose is killed (-9) during a partition. The partition ends at once, both if the classifiers are links (Linux 6.6) and
# if they are filters, which outlive rose. The nodes run until `rose heal` ends them.
. "$(dirname "$0")/common.bash"
cd "$work"
. "$here/killed.bash"
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "cut"
kind = "partition"
node = "a"
peers = ["b"]
TOML

for mask in none tcx; do
  export ROSE_MASK=$mask
  for network in netns host; do
    [ $network-$mask != host-tcx ] || continue  # there is no alternative to cgroup links in a host network
    deployment $network
    killed "$network $mask"
  done
done
