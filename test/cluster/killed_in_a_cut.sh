#!/usr/bin/env bash
# A rose that is killed (-9) during a cut leaves no cut behind: at once, whether classifiers are links (Linux 6.6) or filters that
# stay, and whatever the cut was to end with. Its nodes live on until `rose heal` ends them.
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
    [ $network-$mask != host-tcx ] || continue  # cgroup links: there is no other way
    deployment $network
    killed "$network $mask"
  done
done
