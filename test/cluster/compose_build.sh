#!/usr/bin/env bash
# Tests what Compose files say about builds and first processes, with a real engine: an inline Dockerfile, build secrets
# that are not files, privileged builds, devices, and `init` where podman has no catatonit.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
command -v busybox >/dev/null || skip "no busybox"
[ -c /dev/fuse ] || skip "no /dev/fuse"
cd "$work"
export TMPDIR=$work
mkdir -p root/bin root/tmp root/m root/etc
cp "$(command -v busybox)" root/bin/busybox
for tool in sh cat echo sleep mount test; do ln -s busybox root/bin/$tool; done
printf 'root:x:0:0::/:/bin/sh\n' > root/etc/passwd
import_image root localhost/rosebuild:1
cat > compose.yaml <<'YAML'
services:
  app:
    build:
      privileged: true
      secrets: [{ source: word, target: named, mode: 0400 }]
      ulimits: { nofile: 512 }
      dockerfile_inline: |
        FROM localhost/rosebuild:1
        RUN --mount=type=secret,id=named cat /run/secrets/named >/made
        RUN mount -t tmpfs none /m && echo mounted >>/made; sh -c 'ulimit -n' >>/made
    init: true
    devices: [{ source: /dev/fuse, target: /dev/of-host, permissions: r }]
    # The command creates an orphan that ends soon. It then waits until the container's first process, which `init`
    # provides, has reaped the orphan.
    command:
      - sh
      - -c
      - |
        cat /made
        echo "mine $$$$"
        (: </dev/of-host) && echo readable
        (: >/dev/of-host) 2>/dev/null || echo "not writable"
        sh -c 'sleep 0.1 & echo $$! >/tmp/orphan'
        while test -e /proc/$$(cat /tmp/orphan); do sleep 0.05; done
        echo done
        trap 'exit 3' TERM
        while true; do sleep 0.1; done
secrets:
  word: { environment: SECRET_WORD }
YAML
cat > rose.toml <<TOML
[deployment]
compose = "compose.yaml"
compose_env = { SECRET_WORD = "a secret" }
engine = $engine_toml
[workload]
command = ["sh", "-c", "until grep -q done app/stdout.log; do sleep 0.05; done; rose node stop app"]
timeout = "60s"
[oracle]
command = ["false"]
TOML
cat > calm.toml <<'TOML'
version = 1
[[fault]]
id = "calm"
kind = "pause"
node = "app"
duration = "10ms"
optional = true
TOML
expect 1 "$rose" replay calm.toml -c rose.toml --runs 1 --keep --json --verbose
run=$(json 'j["run_results"][0]["directory"]')
for line in 'a secretmounted' 512 readable 'not writable' done; do
  grep -qxF "$line" "$run/app/stdout.log" || fail "no '$line': $(cat "$run/app/stdout.log" "$run/app/stderr.log")"
done
! grep -qx 'mine 1' "$run/app/stdout.log" || fail "the command of app is the first process, although init is true"
says err 'node app exited with status 3 \(planned\)'
says err "'mode' of a build's secret has no effect"
nothing_left "after a run"
no_containers "after a run"
