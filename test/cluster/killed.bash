# Sourced after common.bash by tests that kill rose (-9) during a network fault between two nodes. Node `a` sleeps, node
# `b` serves, and the workload prints their namespaces or cgroups.

cat > workload.sh <<'SH'
#!/bin/sh
printf 'netns=%s\nip=%s\ncgroup=%s\n' "${ROSE_NETNS_a:-}" "$ROSE_IP_b" "$ROSE_CGROUP_a" > began.new
mv began.new began
sleep 60
SH
chmod +x workload.sh

# deployment NETWORK: writes rose.toml.
deployment() {
  cat > rose.toml <<TOML
name = "killed"
[deployment]
network = "$1"
$([ "$1" = host ] || echo 'subnet = "10.251.13.0/24"')
[[node]]
name = "a"
command = ["/bin/sleep", "1000"]
[[node]]
name = "b"
command = ["python3", "-m", "http.server", "7811"]
ready = { tcp = 7811, timeout = "60s" }
[workload]
command = ["./workload.sh"]
[oracle]
command = ["/bin/true"]
TOML
}

# connects: checks whether a reaches b within half a second, from a's namespace or cgroup.
connects() {
  if [ -n "$netns" ]; then
    nsenter --net=/run/netns/"$netns" timeout 0.5 bash -c "exec 3<>/dev/tcp/$ip/7811" 2>/dev/null
  else
    bash -c "echo \$\$ > $cgroup/cgroup.procs; exec timeout 0.5 bash -c 'exec 3<>/dev/tcp/$ip/7811'" 2>/dev/null
  fi
}
not() { ! "$@"; }

# killed WHAT: replays schedule.toml, kills rose once a cannot reach b, and checks that a reaches b again at once. Then
# calls `rose heal`.
killed() {
  rm -rf report
  "$rose" replay schedule.toml -c rose.toml --runs 1 --report report 2>err >out &
  pid=$!
  until_true 60 test -s report/runs/run-0001/began || { cat err >&2; exit 1; }
  . ./report/runs/run-0001/began
  until_true 60 not connects || fail "$1: no packet was dropped or delayed"
  kill -9 $pid
  wait $pid 2>/dev/null || true
  until_true 30 connects || fail "$1: packets are still dropped or delayed"
  expect 0 "$rose" heal
  if [ -n "$netns" ]; then [ ! -e /run/netns/"$netns" ] || fail "$netns was left"; fi
}
