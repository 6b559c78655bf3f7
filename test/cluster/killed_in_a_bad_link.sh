#!/usr/bin/env bash
# A rose that is killed (-9) while it holds packets back leaves no bad link behind: packets pass at once, and heal gives back what was
# set on the machine's loopback interface.
. "$(dirname "$0")/common.bash"
cd "$work"
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "slow"
kind = "network"
node = "a"
peers = ["b"]
delay = "700ms"
TOML
cat > workload.sh <<'SH'
#!/bin/sh
printf 'netns=%s\nip=%s\ncgroup=%s\n' "${ROSE_NETNS_a:-}" "$ROSE_IP_b" "$ROSE_CGROUP_a" > began.new
mv began.new began
sleep 60
SH
chmod +x workload.sh

# connects: does a reach b in half a second, from its namespace or its cgroup?
connects() {
  if [ -n "$netns" ]; then
    nsenter --net=/run/netns/"$netns" timeout 0.5 bash -c "exec 3<>/dev/tcp/$ip/7812" 2>/dev/null
  else
    bash -c "echo \$\$ > $cgroup/cgroup.procs; exec timeout 0.5 bash -c 'exec 3<>/dev/tcp/$ip/7812'" 2>/dev/null
  fi
}
not() { ! "$@"; }
settings() { for name in route_localnet accept_local rp_filter; do cat /proc/sys/net/ipv4/conf/lo/$name; done | tr '\n' ' '; }
# Tests of other bad links may be at work beside this one.
at_rest() { [ ! -s /run/rose/loopback ]; }

until_true 120 at_rest || fail "the loopback interface is in use"
before=$(settings)
for network in netns host; do
  cat > rose.toml <<TOML
name = "killed"
[deployment]
network = "$network"
$([ $network = host ] || echo 'subnet = "10.251.14.0/24"')
[[node]]
name = "a"
command = ["/bin/sleep", "1000"]
[[node]]
name = "b"
command = ["python3", "-m", "http.server", "7812"]
ready = { tcp = 7812, timeout = "20s" }
[workload]
command = ["./workload.sh"]
[oracle]
command = ["/bin/true"]
TOML
  rm -rf report
  "$rose" replay schedule.toml -c rose.toml --runs 1 --report report 2>err >out &
  pid=$!
  until_true 30 test -s report/runs/run-0001/began || { cat err >&2; exit 1; }
  . ./report/runs/run-0001/began
  until_true 20 not connects || fail "$network: nothing was held back"
  kill -9 $pid
  wait $pid 2>/dev/null || true
  until_true 5 connects || fail "$network: packets are still held back"
  expect 0 "$rose" heal
  until_true 120 at_rest || fail "$network: the loopback interface was not given back"
  [ "$(settings)" = "$before" ] || fail "$network: the loopback interface has '$(settings)' instead of '$before'"
  if [ -n "$netns" ]; then [ ! -e /run/netns/"$netns" ] || fail "$netns was left"; fi
  ip -o link 2>/dev/null | grep -q ' rosehold' && fail "$network: an interface was left" || true
done
