#!/usr/bin/env bash
# Tests the lifecycle hooks of Compose with a real engine. post_start runs before the service is ready and before others
# that depend on it start. pre_stop runs before an orderly stop, but not before a kill. Hooks have the right user and
# environment. A post_start hook that fails makes the start fail.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
command -v busybox >/dev/null || skip "no busybox"
cd "$work"
export TMPDIR=$work
mkdir -p root/bin root/tmp root/etc
cp "$(command -v busybox)" root/bin/busybox
for tool in sh cat sleep id touch test; do ln -s busybox root/bin/$tool; done
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' > root/etc/passwd
import_image root localhost/rosehooks:1
cat > compose.yaml <<'YAML'
services:
  app:
    image: localhost/rosehooks:1
    command: [sh, -c, "cat /shared/hooks; exec sleep 1000"]
    volumes: ["shared:/shared"]
    depends_on: [db]
  db:
    image: localhost/rosehooks:1
    restart: always
    environment: { OWN: of-db }
    command:
      - sh
      - -c
      - |
        trap 'echo stopped; exit 0' TERM
        echo up
        while true; do sleep 0.1; done
    volumes: ["shared:/shared"]
    post_start:
      - command: sh -c 'sleep 0.5; echo first $$OWN >>/shared/hooks'
      - command: [sh, -c, "echo $$(id -u) $$PWD $$WORD $$0 >/tmp/as; cat /tmp/as >>/shared/hooks", "$${dir}"]
        user: root
        working_dir: /tmp
        environment: { WORD: "a word" }
        privileged: true
    pre_stop:
      - command: [sh, -c, "echo bye; id -u"]
        user: nobody
      - command: [sh, -c, "test ! -e /shared/refuse"]
volumes: { shared: }
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
cat > workload.sh <<'SH'
#!/bin/bash
set -e
# inside NODE COMMAND...
inside() { local name=ROSE_CONTAINER_$1; shift; podman exec "${!name}" "$@"; }
hooks() { inside app sh -c 'set -- $(cat /shared/hooks); echo $#'; }
inside app cat /shared/hooks
rose node kill db
rose node start db
echo "after a kill: $(($(hooks) / 7)) $(ls pre_stop-db.log 2>&-)"
# If the restart policy applies, the engine itself restarts the service, and runs no hooks.
kill -KILL "$(cat "$ROSE_PIDFILE_db")"
until [ "$(grep -c up db/stdout.log)" = 3 ]; do sleep 0.1; done
echo "after a restart by the policy: $(($(hooks) / 7))"
inside app touch /shared/refuse
! rose node stop db 2>refused || exit 1
cat refused
rose node status db
inside app busybox rm /shared/refuse
rose node stop db
echo "after a stop: $(grep -c bye pre_stop-db.log) $(tail -n 1 db/stdout.log)"
rose node start db
echo "at the end: $(($(hooks) / 7))"
SH
chmod +x workload.sh
cat > calm.toml <<'TOML'
version = 1
[[fault]]
id = "calm"
kind = "pause"
node = "app"
duration = "10ms"
optional = true
TOML
expect 1 "$rose" replay calm.toml -c rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
for line in 'first of-db' '0 /tmp a word ${dir}' 'after a kill: 2 ' 'after a restart by the policy: 2' \
  'after a stop: 2 stopped' 'at the end: 3'; do
  grep -qxF -- "$line" "$run/workload.log" || fail "no '$line': $(cat "$run/workload.log")"
done
refused="^rose: error: node db: its pre_stop hook 'sh -c test ! -e /shared/refuse' exited with status 1; as with"
grep -q "$refused" "$run/workload.log" || fail "a hook that failed is not reported: $(cat "$run/workload.log")"
grep -q '^db up pid [0-9]* starts 3$' "$run/workload.log" || fail "db was stopped although its hook failed"
[ "$(cat "$run/app/stdout.log")" = "$(printf 'first of-db\n0 /tmp a word ${dir}')" ] ||
  fail "app did not wait for the hooks of db: $(cat "$run/app/stdout.log")"
# The end of the run is an orderly stop, too.
[ "$(tr '\n' ' ' <"$run/pre_stop-db.log")" = "bye 65534 bye 65534 bye 65534 " ] ||
  fail "$(cat "$run/pre_stop-db.log")"
nothing_left "after hooks"
no_containers "after hooks"

# If a post_start hook fails, the start has failed.
sed -i "s|sleep 0.5; echo first .*|echo no way; exit 3'|" compose.yaml
expect 4 "$rose" replay calm.toml -c rose.toml --runs 1
says err "node db: its post_start hook 'sh -c echo no way; exit 3' exited with status 3"
says err '^no way'
nothing_left "after a hook that failed"
no_containers "after a hook that failed"
