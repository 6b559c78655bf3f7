#!/usr/bin/env bash
# A rose that is killed (-9) during a cut leaves no cut behind: at once, whether classifiers are links (Linux 6.6) or filters that
# stay, and whatever the cut was to end with. Its nodes live on until `rose heal` ends them.
. "$(dirname "$0")/common.bash"
cd "$work"
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "cut"
kind = "partition"
node = "a"
peers = ["b"]
TOML
cat > workload.sh <<'SH'
#!/bin/sh
printf 'netns=%s\nip=%s\ncgroup=%s\n' "${ROSE_NETNS_a:-}" "$ROSE_IP_b" "$ROSE_CGROUP_a" > began.new
mv began.new began
sleep 60
SH
chmod +x workload.sh

# connects: does a reach b now? From its namespace, or its cgroup.
connects() {
  if [ -n "$netns" ]; then
    nsenter --net=/run/netns/"$netns" timeout 0.5 bash -c "exec 3<>/dev/tcp/$ip/7811" 2>/dev/null
  else
    bash -c "echo \$\$ > $cgroup/cgroup.procs; exec timeout 0.5 bash -c 'exec 3<>/dev/tcp/$ip/7811'" 2>/dev/null
  fi
}
not() { ! "$@"; }

for mask in none tcx; do
  for network in netns host; do
    [ $network-$mask != host-tcx ] || continue  # cgroup links: there is no other way
    cat > rose.toml <<TOML
name = "killed"
[deployment]
network = "$network"
$([ $network = host ] || echo 'subnet = "10.251.13.0/24"')
[[node]]
name = "a"
command = ["/bin/sleep", "1000"]
[[node]]
name = "b"
command = ["python3", "-m", "http.server", "7811"]
ready = { tcp = 7811, timeout = "20s" }
[workload]
command = ["./workload.sh"]
[oracle]
command = ["/bin/true"]
TOML
    rm -rf report
    ROSE_MASK=$mask "$rose" replay schedule.toml -c rose.toml --runs 1 --report report 2>err >out &
    pid=$!
    until_true 30 test -s report/runs/run-0001/began || { cat err >&2; exit 1; }
    . ./report/runs/run-0001/began
    until_true 20 not connects || fail "$network $mask: nothing was cut"
    kill -9 $pid
    wait $pid 2>/dev/null || true
    until_true 5 connects || fail "$network $mask: still cut"
    expect 0 "$rose" heal
    if [ -n "$netns" ]; then [ ! -e /run/netns/"$netns" ] || fail "$netns was left"; fi
  done
done
