#!/usr/bin/env bash
# If an engine pauses a container (podman pause: the freezer of cgroup v1, or cgroup.freeze), this counts as a paused
# node, both for a tracer of a running container and in a deployment. `diagnose` proposes the pause.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
command -v busybox >/dev/null || skip "no busybox"
cd "$work"
export TMPDIR=$work
mkdir -p root/bin
cp "$(command -v busybox)" root/bin/busybox
for tool in sh sleep; do ln -s busybox root/bin/$tool; done
import_image root localhost/rosepause:1

cat > freeze.sh <<'SH'
#!/bin/bash
set -e
podman pause "$1"
sleep 2  # the container is paused for so long
podman unpause "$1"
SH
chmod +x freeze.sh

# First, the tracer observes a container that was started before rose.
mkdir beside
ticks() { wc -l <"$work/beside/ticks"; }
more_than() { [ "$(ticks)" -gt "$1" ]; }
name=rosetest-$$
podman run -d --name $name --network none -v "$work/beside:/beside" localhost/rosepause:1 \
  sh -c 'while true; do echo tick >>/beside/ticks; sleep 0.1; done' >run.log 2>&1 ||
  { cat run.log; fail "no container"; exit 1; }
trap 'podman rm -f -t 0 $name >/dev/null 2>&1 || true; finish' EXIT
"$rose" trace --container $name --pause 1s --control trace.sock -o beside.bin >trace.out 2>trace.err &
tracer=$!
until_true 20 grep -q ready trace.err
./freeze.sh $name >freeze.log
until_true 20 more_than $(($(ticks) + 5))
podman pause $name >freeze.log
going() {
  "$rose" dump --control trace.sock -o going.bin && "$rose" dump show going.bin --type ps | grep 'not over yet'
}
until_true 20 going
podman unpause $name >freeze.log
kill -INT $tracer
wait $tracer || fail "the tracer failed: $(cat trace.err)"
expect 0 "$rose" dump show beside.bin --type ps
says out ' PS .* paused for [1-9][0-9]*\.[0-9]*s$'
! grep -q blocked out || fail "the pause is reported as a blocked wait: $(grep blocked out)"
podman rm -f -t 0 $name >/dev/null

# Then the container is a node of a deployment.
cat > compose.yaml <<'YAML'
services:
  app:
    image: localhost/rosepause:1
    command: [sh, -c, "while true; do echo tick; sleep 0.1; done"]
  other:
    image: localhost/rosepause:1
    command: [sleep, "1000"]
YAML
cat > rose.toml <<TOML
[deployment]
compose = "compose.yaml"
engine = $engine_toml
[workload]
command = ["./workload.sh"]
timeout = "60s"
[oracle]
command = ["false"]
[trace]
pause = "1s"
TOML
cat > workload.sh <<'SH'
#!/bin/sh
until [ -e over ] && [ $(wc -l <app/stdout.log) -gt $(($(cat over) + 5)) ]; do sleep 0.1; done
SH
cat > incident.sh <<SH
#!/bin/bash
set -e
until [ "\$(wc -l <app/stdout.log)" -gt 10 ]; do sleep 0.1; done
$work/freeze.sh "\$ROSE_CONTAINER_app"
wc -l <app/stdout.log >over.new
mv over.new over
SH
chmod +x workload.sh incident.sh
expect 1 "$rose" trace -c rose.toml --incident ./incident.sh -o dump.bin
expect 0 "$rose" dump show dump.bin --type ps
says out ' app +PS .* paused for [1-9][0-9]*\.[0-9]*s, main process$'
! grep -E ' other +PS .* paused' out || fail "the other node is reported as paused, too"
expect 0 "$rose" diagnose --plan --trace dump.bin -c rose.toml --json
json_is '[(c["kind"], c["node"]) for c in j["candidates"]][0]' "('pause', 'app')"
json_is 'j["candidates"][0]["words"].split(" for ")[0]' 'pause app (all its processes)'
json_is 'float(j["candidates"][0]["words"].split(" for ")[1].split("s")[0]) >= 1' True
nothing_left "after a dump"
no_containers "after a dump"
