#!/usr/bin/env bash
# Tests services that share the network of another service (network_mode: service:X), with a real engine: their order,
# names and address, and the restart of X. A partition of one is a partition of both, and events are assigned to the
# right node.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
command -v busybox >/dev/null || skip "no busybox"
cd "$work"
export TMPDIR=$work
mkdir -p root/bin root/tmp
cp "$(command -v busybox)" root/bin/busybox
for tool in sh cat echo sleep nc hostname; do ln -s busybox root/bin/$tool; done
import_image root localhost/rosenet:1
cat > compose.yaml <<'YAML'
services:
  side:
    image: localhost/rosenet:1
    network_mode: service:app
    # At 127.0.0.1, `side` reaches app. The failing reads of /of-side are events of `side`.
    command:
      - sh
      - -c
      - |
        hostname; cat /etc/hosts
        until [ "$$(nc -w 1 127.0.0.1 7001 </dev/null)" = app ]; do sleep 0.1; done
        echo reached
        while true; do cat /of-side 2>/dev/null; sleep 0.2; done &
        nc -ll -p 7003 -e sh -c 'while true; do echo tick; sleep 0.1; done' &
        exec nc -ll -p 7002 -e echo side
  app:
    image: localhost/rosenet:1
    hostname: box
    restart: always
    command: sh -c 'echo up; exec nc -ll -p 7001 -e echo app'
    networks: { default: { aliases: [front] } }
  other:
    image: localhost/rosenet:1
    # This connection is never silent: it sends requests to `side` at app's address.
    command: [sh, -c, "until nc app 7003 </dev/null; do sleep 0.1; done"]
YAML
cat > rose.toml <<TOML
[deployment]
compose = "compose.yaml"
engine = $engine_toml
[[node]]
name = "side"
ready = { tcp = 7002 }
[[node]]
name = "app"
ready = { tcp = 7001 }
[workload]
command = ["./workload.sh"]
timeout = "60s"
[oracle]
command = ["false"]
[trace]
network_delay = "1s"
TOML
# ask NAME PORT: prints the answer that comes from this name and port.
cat > base.sh <<'SH'
#!/bin/bash
set -e
ask() { timeout 0.5 bash -c "exec 3<>/dev/tcp/$1/$2; cat <&3" || echo nothing; }
until grep -q reached side/stdout.log; do sleep 0.05; done
[ "$ROSE_NETNS_side" = "$ROSE_NETNS_app" ] && [ "$ROSE_IP_side" = "$ROSE_IP_app" ]
echo "before: $(ask app 7001) $(ask side 7002) $(ask front 7002) $(ask box 7001)"
SH

# When app is restarted, `side` keeps its network, and app joins it again.
part() { { cat base.sh; cat; } > workload.sh; chmod +x workload.sh; }
part <<'SH'
rose node kill app
echo "down: $(ask side 7001 2>/dev/null) $(ask app 7002)"
rose node start app
echo "up: $(ask side 7001) $(ask app 7002) $(rose node status side)"
SH
cat > calm.toml <<'TOML'
version = 1
[[fault]]
id = "calm"
kind = "pause"
node = "other"
duration = "10ms"
optional = true
TOML
# logged FILE PATTERN: checks that the file in the run's folder contains the pattern
logged() { grep -qE -- "$2" "$run/$1" || { fail "no '$2' in $1:"; head -30 "$run/$1" | sed 's/^/  /' >&2; }; }
expect 1 "$rose" replay calm.toml -c rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
logged workload.log '^before: app side side app$'
logged workload.log '^down: nothing side$'
logged workload.log '^up: app side side up pid [0-9]+ starts 1$'
logged side/stdout.log '^box$'
logged side/stdout.log '^10\.77\.0\.1.*box app front .*side'
says err 'node side shares the network and the address of app'
nothing_left "after a restart"
no_containers "after a restart"

# The nodes 'side' and 'app' share a network, so a partition of 'side' also cuts off 'app', and its end connects both
# again. During the partition, the two still reach each other.
part <<'SH'
other() {
  timeout 0.5 ip netns exec "$ROSE_NETNS_other" bash -c "exec 3<>/dev/tcp/$ROSE_IP_app/$1; cat <&3" 2>&- || echo nothing
}
until [ "$(other 7001)" = nothing ]; do sleep 0.1; done
echo "cut: $(other 7001) $(other 7002) $(ask 127.0.0.1 7001 2>&-)"
ip netns exec "$ROSE_NETNS_side" bash -c 'exec 3<>/dev/tcp/127.0.0.1/7001; cat <&3'
until [ "$(other 7001) $(other 7002)" = "app side" ]; do sleep 0.1; done
SH
cat > cut.toml <<'TOML'
version = 1
[[fault]]
id = "cut"
kind = "partition"
node = "side"
duration = "3s"
TOML
expect 1 "$rose" replay cut.toml -c rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
logged workload.log '^cut: nothing nothing nothing$'
[ "$(tail -n 1 "$run/workload.log")" = app ] ||
  fail "app cannot be reached within its network: $(cat "$run/workload.log")"
json_is 'j["run_results"][0]["faults"][0]["detail"].split(",")[0]' 'side and app partitioned off'
nothing_left "after a partition"
no_containers "after a partition"
sed 's|^node = .*|node = "side"\npeers = ["app"]|' cut.toml > within.toml
expect 2 "$rose" replay within.toml -c rose.toml --runs 1
says err "'app' shares the network of a node on the other side"
nothing_left "after a refusal"

# In a dump from production, each event belongs to the right node, and the partition is that of the shared network.
part <<'SH'
until [ "$(wc -l <other/stdout.log)" -gt 20 ]; do sleep 0.1; done
touch begin
until [ -e healed ] && [ "$(wc -l <other/stdout.log)" -gt $(($(cat healed) + 10)) ]; do sleep 0.1; done
SH
cat > incident.sh <<'SH'
#!/bin/bash
set -e
until [ -e begin ]; do sleep 0.05; done
link() { ip netns exec "$ROSE_NETNS_side" ip link set rose0 $1; }
link down
sleep 2  # the link is down for so long
wc -l <other/stdout.log >lines
link up
mv lines healed
SH
chmod +x incident.sh
expect 1 "$rose" trace -c rose.toml --incident ./incident.sh -o dump.bin
expect 0 "$rose" dump show dump.bin --type scf,nd
[ "$(awk '/of-side/ { print $2 }' out | sort -u)" = side ] ||
  fail "events of side are assigned to another node: $(grep of-side out)"
says out '^\+[0-9.]+ +side +ND .* 10\.77\.0\.2 -> 10\.77\.0\.1:7003'
expect 0 "$rose" diagnose --plan --trace dump.bin -c rose.toml --json
json_is 'next((c["node"], c["peer"]) for c in j["candidates"] if c["kind"] == "partition")' "('app', 'other')"
json_is 'any("shares the network and the address of" in note for note in j["notes"])' True
nothing_left "after a dump"
no_containers "after a dump"
