#!/usr/bin/env bash
# Tests services in the PID or IPC namespace of another service (`pid: service:X`, `ipc: container:NAME`) or of this
# machine, with a real engine: their order, shared processes and memory, the end and restart of X, and what such a
# service leaves behind.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
command -v busybox >/dev/null || skip "no busybox"
cd "$work"
export TMPDIR=$work
mkdir -p root/bin root/tmp
cp "$(command -v busybox)" root/bin/busybox
for tool in sh cat echo sleep tr ls readlink ps touch grep; do ln -s busybox root/bin/$tool; done
import_image root localhost/rosens:1
cat > compose.yaml <<'YAML'
name: kv
services:
  # This service is listed before app, although it joins app's namespace.
  watcher:
    image: localhost/rosens:1
    pid: service:app
    ipc: container:kv-app-1
    shm_size: 1m
    command:
      - sh
      - -c
      - |
        tr '\0' ' ' < /proc/1/cmdline; echo
        ls /dev/shm; echo listed
        sleep 7654 &
        while true; do touch /dev/shm/of-watcher; sleep 0.1; done
  app:
    image: localhost/rosens:1
    ipc: shareable
    restart: on-failure
    command:
      - sh
      - -c
      - |
        echo app began with $$(ls /dev/shm | grep of-app)
        touch /dev/shm/of-app
        while true; do ls /dev/shm; sleep 0.2; done
  # This service waits until another one is healthy, so its container is created late.
  late:
    image: localhost/rosens:1
    pid: service:watcher
    depends_on: {other: {condition: service_healthy}}
    command: ["sh", "-c", "ps; echo listed; exec sleep 4321"]
  # The processes that this service leaves behind end with it, although the first process of its namespace still runs.
  leaver:
    image: localhost/rosens:1
    pid: service:app
    command: ["sh", "-c", "sleep 9876 & sleep 0.5; exit 0"]
  other:
    image: localhost/rosens:1
    pid: host
    ipc: host
    healthcheck: {test: ["CMD", "/bin/ls", "/"]}
    command: ["sh", "-c", "for ns in pid ipc; do readlink /proc/self/ns/$$ns; done; exec sleep 1000"]
  own:
    image: localhost/rosens:1
    pid: private
    ipc: private
    command: ["sh", "-c", "echo $$$$; readlink /proc/self/ns/ipc; exec sleep 1000"]
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
TOML
cat > calm.toml <<'TOML'
version = 1
[[fault]]
id = "calm"
kind = "pause"
node = "own"
duration = "10ms"
optional = true
TOML
# logged FILE PATTERN: checks that the file in the run's folder contains the pattern
logged() { grep -qE -- "$2" "$run/$1" || { fail "no '$2' in $1:"; head -30 "$run/$1" | sed 's/^/  /' >&2; }; }
cat > workload.sh <<'SH'
#!/bin/bash
status() { rose node status $1 | cut -d' ' -f2,4- | sed 's/[0-9]* starts/starts/'; }
until grep -q of-watcher app/stdout.log && grep -q listed late/stdout.log; do sleep 0.05; done
# A service in the namespace can end and start without affecting the others.
rose node kill watcher
echo "without: $(status watcher), $(status app)"
rose node start watcher
until rose node status leaver | grep -q down; do sleep 0.05; done
echo "left: $(pgrep -cf 'sleep 9876')"
# When app ends, all others in its namespace end. They are started again with app.
rose node kill app
until rose node status late | grep -q down && rose node status watcher | grep -q down; do sleep 0.05; done
echo "down: $(status app), $(status watcher), $(status late)"
rose node start watcher 2>&1 | head -1
rose node start app
until rose node status late | grep -q up && rose node status watcher | grep -q up; do sleep 0.05; done
echo "up: $(status app), $(status watcher), $(status late), $(status leaver)"
SH
chmod +x workload.sh
expect 1 "$rose" replay calm.toml -c rose.toml --runs 1 --keep --json --verbose
run=$(json 'j["run_results"][0]["directory"]')
logged watcher/stdout.log '^sh -c echo app began'
logged late/stdout.log '7654'
# `other` is in the namespaces of the machine, which are also those of the engine.
[ "$(cat "$run/other/stdout.log")" = "$(readlink /proc/self/ns/pid /proc/self/ns/ipc)" ] ||
  fail "other is not in the machine's namespaces: $(cat "$run/other/stdout.log")"
logged own/stdout.log '^1$'
! grep -qF "$(readlink /proc/self/ns/ipc)" "$run/own/stdout.log" || fail "own shares the machine's IPC namespace"
logged workload.log '^without: down 1, up '
logged workload.log '^left: 0$'
logged workload.log '^down: down 1, down 2, down 1$'
logged workload.log 'watcher joins a namespace of app, which does not run'
logged workload.log '^up: up .*2, up .*3, up .*2, down 1$'
[ "$(grep -c 'app began with$' "$run/app/stdout.log")" = 2 ] || fail "/dev/shm of app is not new after a restart"
says err "watcher is in the PID namespace of app"
says err "'shm_size' of service watcher has no effect"
nothing_left "after a restart of the owner"
no_containers "after a restart of the owner"

# A fault kills the owner of the namespace, and its restart policy starts both services again. A process that was just
# started may not have printed anything yet, so the workload waits for its line.
cat > workload.sh <<'SH'
#!/bin/sh
until [ "$(grep -c listed watcher/stdout.log)" = 2 ]; do sleep 0.1; done
rose node status watcher
SH
printf 'version = 1\n[[fault]]\nid = "kill"\nkind = "crash"\nnode = "app"\n' > kill.toml
expect 1 "$rose" replay kill.toml -c rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
logged workload.log ' up .*starts 2$'
nothing_left "after a kill"
no_containers "after a kill"

# Containers that depend on each other are removed although rose was killed.
printf '#!/bin/sh\necho working; exec sleep 1000\n' > workload.sh
signalled KILL report/runs/run-0001/workload.log working "$rose" replay calm.toml -c rose.toml --runs 1 --report report
expect 0 "$rose" heal
says out 'container rose-[0-9a-f]*-app: removed'
nothing_left "after heal"
no_containers "after heal"
