#!/usr/bin/env bash
# Tests nodes in docker containers, each in a network of the run: faults, names, restarts, addresses, a Compose file.
# Nothing is left behind, even if rose is killed. The test starts its own docker daemon.
. "$(dirname "$0")/common.bash"
for program in docker dockerd containerd gcc; do command -v $program >/dev/null || skip "no $program"; done
command -v busybox >/dev/null || skip "no busybox"
cd "$work"
export TMPDIR=$work
cat > daemon.json <<JSON
{"data-root": "$work/data", "exec-root": "$work/exec", "pidfile": "$work/docker.pid", "hosts": ["unix://$work/docker.sock"], "storage-driver": "vfs",
 "iptables": false, "bridge": "none", "ip-forward": false, "ip-masq": false, "exec-opts": ["native.cgroupdriver=cgroupfs"],
 "default-ulimits": {"nofile": {"Name": "nofile", "Soft": 1024, "Hard": 1024}}}
JSON
export DOCKER_HOST=unix://$work/docker.sock
dockerd --config-file daemon.json >dockerd.log 2>&1 &
daemon=$!
end_daemon() {
  kill $daemon 2>/dev/null || true
  wait $daemon 2>/dev/null || true
  for folder in $(awk -v at="$work/" 'index($2, at) == 1 { print $2 }' /proc/mounts | sort -r); do
    umount -l "$folder" || true
  done
}
trap 'end_daemon; finish' EXIT
deadline=$((SECONDS + 60))
until docker version >/dev/null 2>&1; do
  kill -0 $daemon 2>/dev/null || { tail -3 dockerd.log; skip "no docker daemon runs here: $(tail -1 dockerd.log)"; }
  [ $SECONDS -lt $deadline ] || skip "no docker daemon answers here"
  sleep 0.1
done
mkdir -p root/bin root/data
cp "$(command -v busybox)" root/bin/busybox
for tool in sh cat sleep mkdir grep hostname ip nc; do ln -s busybox root/bin/$tool; done
cat > root/bin/victim <<'SH'
#!/bin/sh
echo "began as $(hostname) with $(grep -w n2 /etc/hosts) and $(cat /run/secrets/word)"
n=0
while :; do n=$((n + 1)); mkdir /data/made.$n && echo "mkdir $n = ok"; sleep 0.02; done
SH
chmod +x root/bin/victim
tar -C root -c . | docker import --change 'CMD ["/bin/victim"]' - localhost/rosedocker:1 >import.log 2>&1 ||
  { cat import.log; skip "docker cannot import an image here"; }
docker run --rm --network none localhost/rosedocker:1 /bin/sh -c 'exit 0' >probe.log 2>&1 ||
  { cat probe.log; skip "docker cannot run a container here: $(tail -1 probe.log)"; }
cat > compose.yaml <<'YAML'
services:
  n1:
    image: localhost/rosedocker:1
    hostname: first
    extra_hosts: ["elsewhere:192.0.2.7"]
    mem_limit: 64m
    tty: true
    secrets: [word]
    networks: { net: { ipv4_address: 172.30.5.20 } }
  n2:
    image: localhost/rosedocker:1
    restart: always
    secrets: [word]
    networks: [net]
    volumes: ["./not-there:/kept"]
networks:
  net: { ipam: { config: [{ subnet: 172.30.5.0/24 }] } }
secrets:
  word: { environment: WORD }
YAML
cat > rose.toml <<'TOML'
[deployment]
engine = "docker"
compose = "compose.yaml"
[[node]]
name = "n1"
ready = { log = "mkdir 1 " }
[[node]]
name = "n2"
ready = { log = "mkdir 1 " }
[workload]
command = ["./workload.sh"]
[oracle]
command = ["grep", "-q", "Input/output error", "n1/stderr.log"]
TOML
cat > workload.sh <<'SH'
#!/bin/sh
while [ "$(grep -c mkdir n1/stdout.log)" -lt ${BEATS:-60} ] || [ "$(grep -c began n2/stdout.log)" -lt 2 ]; do sleep 0.05; done
test "$ROSE_IP_n1" = 172.30.5.20
docker exec "$(docker ps -q --filter name=-n1 --filter label=rose --filter ancestor=localhost/rosedocker:1)" /bin/sh -c 'cat /etc/hosts; ip -4 -o addr; cat /sys/fs/cgroup/memory/memory.limit_in_bytes'
SH
chmod +x workload.sh
{ echo 'version = 1'; mkdir_fails; } > faults.toml
cat >> faults.toml <<'TOML'
[[fault]]
id = "stall"
kind = "pause"
node = "n1"
duration = "200ms"
[[fault]]
id = "die"
kind = "crash"
node = "n2"
[[fault]]
id = "cut"
kind = "partition"
node = "n1"
duration = "200ms"
TOML
no_containers() {
  local all
  all=$(docker ps -aq --filter label=rose; docker volume ls -q; docker images -q 'rose-*')
  [ -z "$all" ] || fail "docker resources are left $1: $all"
}
export WORD=secret
expect 0 "$rose" replay faults.toml -c rose.toml --runs 2 --keep --json
json_is '[f["fired"] for f in j["faults"]]' '[2, 2, 2, 2]'
json_is 'j["reproduced"]' 2
run=$(json 'j["run_results"][0]["directory"]')
grep -q "^began as first with .*n2.* and secret" "$run/n1/stdout.log" || fail "n1: $(head -1 "$run/n1/stdout.log")"
[ "$(grep -c 'Input/output' "$run/n1/stderr.log")" = 1 ] ||
  fail "more or fewer than one call failed: $(cat "$run/n1/stderr.log")"
for part in 'elsewhere' '172.30.5.20.*rose0\|rose0.*172.30.5.20' '^67108864'; do
  grep -q "$part" "$run/workload.log" || [ ! -e /sys/fs/cgroup/memory ] ||
    fail "no '$part' in the container: $(cat "$run/workload.log")"
done
nothing_left "after a replay"
no_containers "after a replay"
[ ! -e not-there ] || fail "a folder was created on this machine"

BEATS=1000000 signalled KILL report/runs/run-0001/n1/stdout.log 'mkdir 20 = ' "$rose" replay faults.toml -c rose.toml \
  --runs 1 --report report
expect 0 "$rose" heal
nothing_left "after heal"
no_containers "after heal"
