#!/usr/bin/env bash
# Runs an unchanged Compose file with a real engine, and checks order, health checks, one-shot services, names and
# volumes. Rose's own keys are in rose.toml. Conditions name functions of programs that exist only in images. A schedule
# reproduces its bug in containers as it does with plain processes.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
command -v busybox >/dev/null || skip "no busybox"
cd "$work"
export TMPDIR=$work
cat > victim.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void beat(int n) { printf("beat %d\n", n); }
int main(void) {
  setvbuf(stdout, 0, _IONBF, 0);
  printf("began with %s\n", getenv("GREETING"));
  for (int n = 1;; n++) { beat(n); usleep(20000); }
}
C
gcc -static -g -O1 -o victim victim.c
mkdir -p root/bin
cp victim root/bin/
cp "$(command -v busybox)" root/bin/busybox
for tool in sh cat sleep test grep; do ln -s busybox root/bin/$tool; done
import_image root localhost/rosecompose:1 --change 'CMD ["/bin/victim"]'
# The service `setup` runs in an image that is built here from files of this machine.
mkdir image common
printf 'FROM localhost/rosecompose:1\nARG WORD\nRUN echo "built with $WORD" >/built\nCOPY note /note\n' > \
  image/Dockerfile
echo 'a note' > image/note
cat > common/base.yaml <<'YAML'
services:
  base:
    image: localhost/rosecompose:${TAG:-1}
    env_file: ../app.env
    environment:
      - GREETING
    mem_limit: 96m
    pids_limit: 50
YAML
cat > compose.yaml <<'YAML'
services:
  app:
    extends: { file: common/base.yaml, service: base }
    restart: unless-stopped
    tty: true
    stdin_open: true
    volumes:
      - shared:/shared
    ports: ["8080:80"]
    depends_on:
      db: { condition: service_healthy }
      setup: { condition: service_completed_successfully }
  setup:
    build: { context: image, args: { WORD: care } }
    secrets: [word]
    configs: [{ source: settings, target: /etc/settings }]
    command: sh -c 'cat /shared/db /shared/small /built /note /run/secrets/word /etc/settings >/shared/setup && grep -w database /etc/hosts >>/shared/setup'
    volumes: ["shared:/shared"]
    depends_on:
      db: { condition: service_healthy }
  db:
    image: localhost/rosecompose:1
    entrypoint: [sh, -c]
    command: ["sleep 0.3; busybox df -k /small | grep -o ' 2048 ' >/shared/small; echo up >/shared/db; exec sleep 1000"]
    healthcheck: { test: ["CMD", "test", "-s", "/shared/db"], interval: 1s }
    networks: { default: { aliases: [database] } }
    volumes: ["shared:/shared", "./not-there:/kept", "small:/small"]
  tool:
    image: localhost/none:1
    profiles: [debug]
volumes:
  shared: { external: true }
  small: { driver_opts: { type: tmpfs, device: tmpfs, o: size=2m } }
secrets:
  word: { file: ./word }
configs:
  settings: { content: "level = ${LEVEL:-high}\n" }
YAML
echo 'GREETING="good morning"' > app.env
echo 'a secret' > word
cat > rose.toml <<TOML
[deployment]
compose = "compose.yaml"
engine = $engine_toml
[[node]]
name = "app"
functions = ["beat"]
ready = { log = "beat 1" }
[workload]
command = ["./workload.sh"]
[oracle]
command = ["sh", "-c", "test \$(grep -c began app/stdout.log) = 2"]
TOML
cat > workload.sh <<'SH'
#!/bin/sh
set -e
until [ "$(grep -c began app/stdout.log)" = 2 ] && grep -q "beat 5" app/stdout.log; do sleep 0.05; done
podman exec "$(podman ps -q --filter name=-app)" cat /shared/setup
podman exec "$(podman ps -q --filter name=-app)" sh -c 'test ! -e /sys/fs/cgroup/memory/memory.limit_in_bytes || cat /sys/fs/cgroup/memory/memory.limit_in_bytes'
test -e /sys/fs/cgroup/memory || cat "$ROSE_CGROUP_app/rose.container/memory.max"
SH
chmod +x workload.sh
cat > die.toml <<'TOML'
version = 1
[[fault]]
id = "die"
kind = "crash"
node = "app"
when = [ { function = "beat", count = 30 } ]
TOML
expect 0 "$rose" replay die.toml -c rose.toml --runs 1 --keep --json
json_is 'j["faults"][0]["fired"]' 1
run=$(json 'j["run_results"][0]["directory"]')
grep -q '^began with good morning$' "$run/app/stdout.log" || fail "$(head -1 "$run/app/stdout.log")"
for line in 'built with care' 'a note' 'a secret' 'level = high'; do
  grep -q "^$line\$" "$run/workload.log" || fail "no '$line': $(cat "$run/workload.log")"
done
grep -q '^100663296$' "$run/workload.log" || fail "no memory limit is set: $(cat "$run/workload.log")"
grep -q '^ 2048 $' "$run/workload.log" || fail "the tmpfs volume has the wrong size: $(cat "$run/workload.log")"
[ ! -e not-there ] || fail "a folder was created on this machine"
says err "volume 'shared' is external: each run uses an empty one of its own instead"
grep -q '^up$' "$run/workload.log" && grep -qw database "$run/workload.log" ||
  fail "setup did not run between db and app: $(cat "$run/workload.log")"
# The service is killed exactly at its 30th beat, so its log contains everything until then.
last=$(sed -n '/^began/{n;:a;n;/^began/q;h;ba};$!d' "$run/app/stdout.log";
  awk '/^began/{c++} c==1{l=$0} END{print l}' "$run/app/stdout.log")
[ "$last" = "beat 29" ] || fail "app died after '$last'"
nothing_left "after a replay"
no_containers "after a replay"
[ -z "$(podman volume ls -q)" ] || fail "volumes left: $(podman volume ls -q)"
ls -d "$work"/rose-*-images >/dev/null 2>&1 && fail "files of images left"

# An unknown key is refused with its line in the Compose file.
sed 's|^    ports:.*|    memm_limit: 1g|' compose.yaml > other.yaml
sed 's|compose.yaml|other.yaml|' rose.toml > wrong.toml
expect 2 "$rose" replay die.toml -c wrong.toml --runs 1
says err "other.yaml:9: service 'app': unknown key 'memm_limit'"
# If a one-shot service fails, the run ends, and the reason is printed.
sed 's|sh -c .cat.*|sh -c "echo no way; exit 3"|' compose.yaml > other.yaml
expect 4 "$rose" replay die.toml -c wrong.toml --runs 1
says err 'no way'
nothing_left "after refusals"
no_containers "after refusals"

# The embedded cluster runs as processes and in containers. The same schedule reproduces its bug in both.
kv=$here/../../examples/kv/split-lost-writes
[ -x "$build/examples/kv/kv-server" ] || { [ $failures -eq 0 ]; exit; }
mkdir kv kv/root kv/root/tmp
cp "$kv"/*.sh kv/
cp "$build/examples/kv/kv-server" kv/root/kv-server
ldd kv/root/kv-server | grep -o '/[^ ]*' | while read -r library; do install -D "$library" "kv/root$library"; done
import_image kv/root localhost/rosekv:1
python3 - "$kv/rose.toml" "$build" "$engine_toml" <<'PY'
import re, sys
text = open(sys.argv[1]).read().replace("${config_dir}/../../../build/release", sys.argv[2]).replace("../../../build/release", sys.argv[2])
text = re.sub(r'^functions = \[.*?\]\n', '', text, flags=re.M | re.S)
open("kv/processes.toml", "w").write(text)
text = re.sub(r'command   = \["[^"]*kv-server"', 'image = "localhost/rosekv:1"\ncommand   = ["/kv-server"', text)
open("kv/containers.toml", "w").write(text.replace("[deployment]\n", f"[deployment]\nengine = {sys.argv[3]}\n"))
PY
cat > kv/cut.toml <<'TOML'
version = 1
[[fault]]
id = "cut"
kind = "partition"
node = "n1"
peers = ["n2", "n3"]
duration = "3s"
when = [ { elapsed = "1s" } ]
TOML
for how in processes containers; do
  replays 3 kv/cut.toml kv/$how.toml --jobs 3
done
nothing_left "after the cluster"
no_containers "after the cluster"
