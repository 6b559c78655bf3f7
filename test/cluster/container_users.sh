#!/usr/bin/env bash
# Health checks, hooks and the commands that run at the same time as the nodes can execute programs in containers, even
# if only the engine can see the overlays of the containers, and even as users that exist only in the image. If a
# container ends again and again while rose waits for it to be ready, rose reports that.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
command -v busybox >/dev/null || skip "no busybox"
cd "$work"
export TMPDIR=$work
[ $driver = overlay ] || skip "no overlay can be mounted here: $(tail -1 "$store/overlay.log")"
mkdir -p root/bin root/etc root/tmp
chmod 1777 root/tmp
cp "$(command -v busybox)" root/bin/busybox
for tool in sh cat sleep test grep id touch; do ln -s busybox root/bin/$tool; done
echo 'keeper:x:4321:4321::/:/bin/sh' > root/etc/passwd
import_image root localhost/roseusers:1 --change 'CMD ["/bin/sh", "-c", "touch /tmp/up; exec sleep 1000"]' \
  --change 'USER keeper'
cat > compose.yaml <<'YAML'
services:
  app:
    image: localhost/roseusers:1
    healthcheck: { test: ["CMD", "test", "-e", "/tmp/up"], interval: 100ms, retries: 100 }
    post_start:
      - command: ["sh", "-c", "id -u > /tmp/hooked"]
  next:
    image: localhost/roseusers:1
    depends_on: { app: { condition: service_healthy } }
YAML
cat > workload.sh <<'SH'
#!/bin/sh
{ podman exec -u keeper "$ROSE_CONTAINER_app" cat /tmp/hooked
  podman cp "$ROSE_CONTAINER_app:/tmp/hooked" copied
  cat copied
  grep -c next /etc/hosts; } > seen 2>&1
SH
chmod +x workload.sh
cat > rose.toml <<TOML
[deployment]
engine = $engine_toml
compose = "compose.yaml"
[workload]
command = ["./workload.sh"]
[oracle]
command = ["true"]
TOML
printf 'version = 1\n[[fault]]\nid = "stall"\nkind = "pause"\nnode = "next"\nduration = "10ms"\n' > stall.toml
expect 0 "$rose" replay stall.toml -c rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
[ "$(tr '\n' ' ' < "$run/seen")" = "4321 4321 1 " ] || fail "the workload saw: $(cat "$run/seen")"

# The container ends after each start until a certain file exists. The test creates this file once rose has reported the
# repeated ends.
sed -e 's|test: .*|test: ["CMD", "true"], interval: 100ms, retries: 1000 }|' -e '/post_start/,+1d' \
  -e '0,/image:.*/s||&\n    restart: always\n    volumes: ["./may:/may:ro"]|' \
  -e '0,/volumes:.*/s||&\n    command: ["sh", "-c", "cat /may/start \&\& exec sleep 1000"]|' \
  compose.yaml > loop.yaml
sed -i 's|\["CMD", "true"\]|["CMD", "test", "-e", "/may/start"]|' loop.yaml
mkdir may
sed 's|compose.yaml|loop.yaml|; s|"./workload.sh"|"true"|' rose.toml > loop.toml
"$rose" replay stall.toml -c loop.toml --runs 1 > loop.out 2> loop.err &
pid=$!
report="node app is not ready yet; its restart policy started it [0-9]* times, and it last exited with status 1"
until_true 60 grep -q "$report" loop.err ||
  cat loop.err >&2
says ../"$(basename "$work")"/loop.err "cat: can't open '/may/start'"
touch may/start
wait $pid || { fail "the run did not go on"; cat loop.out loop.err >&2; }
nothing_left "at the end"
no_containers "at the end"
