#!/usr/bin/env bash
# Features that real Compose files rely on, one small file for each (compose_kinds/): names, folders, variables, health
# checks and profiles have the same meaning as for Compose. With a real engine.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
cd "$work"
export TMPDIR=$work

# An image with a C library that resolves names.
mkdir -p root/bin root/etc root/tmp
for tool in sh getent hostname sleep cat echo env grep wc id; do
  path=$(type -P $tool) || skip "no $tool"
  cp -L "$path" root/bin/$tool
  ldd "$path" | grep -o '/[^ ]*' | while read -r library; do install -D "$library" "root$library"; done
done
for library in /lib/*/libnss_files.so.2 /lib/*/libnss_dns.so.2; do
  [ ! -e "$library" ] || install -D "$library" "root$library"
done
echo 'hosts: files dns' > root/etc/nsswitch.conf
echo 'root:x:0:0::/:/bin/sh' > root/etc/passwd
import_image root localhost/deb:1
cat > with-health <<'FILE'
FROM localhost/deb:1
CMD ["/bin/sleep", "1000"]
HEALTHCHECK --interval=30s CMD ["/bin/cat", "/etc/hosts"]
FILE
podman build --format docker --tag localhost/with-health:1 --file with-health "$store/probe" >health.log 2>&1 ||
  { cat health.log; skip "podman cannot build an image here"; }

# kind NAME WORKLOAD [NODE]: makes a run of the deployment compose_kinds/NAME. WORKLOAD is a shell script, and NODE (by
# default the first service) is paused for 10 ms. Afterwards $run is the run's folder.
printf 'version = 1\n[[fault]]\nid = "calm"\nkind = "pause"\nduration = "10ms"\noptional = true\n' > calm
kind() {
  local name=$1 script=$2 node
  [ -d "$name" ] || cp -r "$here/compose_kinds/$name" "$name"
  cat > "$name/rose.toml" <<TOML
[deployment]
compose = "compose.yaml"
engine = $engine_toml
[workload]
command = ["sh", "-c", '''$script''']
timeout = "60s"
[oracle]
command = ["false"]
TOML
  node=${3:-$(sed -n 's/^  \([a-z0-9-]*\):.*/\1/p' "$name/compose.yaml" | head -1)}
  { cat calm; echo "node = \"$node\""; } > "$name/calm.toml"
  # Call rose from another folder: it must look for files beside the configuration, and not in the current folder.
  expect 1 "$rose" replay "$name/calm.toml" -c "$name/rose.toml" --runs "${RUNS:-1}" --jobs "${RUNS:-1}" --keep --json
  run=$(json 'j["run_results"][0]["directory"]')
  nothing_left "after $name"
  no_containers "after $name"
}
# wait_for FILE PATTERN and wait_for_up NODE print a shell command for a workload. The command waits until a line of the
# file matches, or until the node is up: the schedule of these runs pauses a node for a moment, so the node may be late.
wait_for_up() { printf 'until rose node status %s | grep " up "; do sleep 0.05; done\n' "$1"; }
wait_for() { printf 'until grep -q "%s" %s; do sleep 0.05; done\n' "$2" "$1"; }
# logged FILE PATTERN: checks that the file in the run's folder contains the pattern
logged() { grep -qE -- "$2" "$run/$1" || { fail "no '$2' in $1:"; head -30 "$run/$1" | sed 's/^/  /' >&2; }; }

kind workload-names 'getent hosts broker && getent ahostsv4 workload-names-broker-1 && ! getent hosts kafka'
logged workload.log '^10\.77\.0\.1 +broker'

kind hostname-resolves "$(wait_for beta/stdout.log 'box-one') && getent hosts box-two && getent hosts box-one"
logged alpha/stdout.log '^10\.77\.0\.1 +box-one'
logged alpha/stdout.log '^10\.77\.0\.2 +.*box-two'
logged beta/stdout.log '^box-two\.lab\.test$'
logged beta/stdout.log '^10\.77\.0\.2 *$'
logged beta/stdout.log '^10\.77\.0\.1 +.*box-one'
logged workload.log '^10\.77\.0\.2 +.*box-two\.lab\.test'

# Pretend that /etc/hosts of this machine maps kafka to 127.0.0.1.
printf '127.0.0.1 localhost\n127.0.0.1 kafka\n127.0.0.1 vm\n' > hosts
sed "s|^\[containers\]|&\nbase_hosts_file = \"$work/hosts\"|" "$CONTAINERS_CONF" > "$store/leak.conf"
CONTAINERS_CONF=$store/leak.conf kind host-hosts-leak "$(wait_for client/stdout.log 'localhost')"
logged client/stdout.log '^10\.77\.0\.1 +STREAM'
! grep -qE '^127\.0\.0\.1.*(kafka|STREAM|vm)' "$run/client/stdout.log" ||
  fail "names of this machine: $(cat "$run/client/stdout.log")"

# The folder belongs to the user, so runs neither change it nor see files of other runs in it.
cp -r "$here/compose_kinds/data-folder-of-the-user" .
mkdir data-folder-of-the-user/data
RUNS=2 kind data-folder-of-the-user "$(wait_for db/stdout.log .) && cat data/data/runs"
says err 'data-folder-of-the-user/data \(0 files, 0 B\): each run has its own version'
[ "$(grep -c 'own version' err)" = 1 ] || fail "reported for each run: $(cat err)"
for n in 0 1; do
  run=$(json "j['run_results'][$n]['directory']")
  logged db/stdout.log '^1$'
  logged workload.log '^run$'
done
[ -z "$(ls -A data-folder-of-the-user/data)" ] ||
  fail "the user's folder was changed: $(ls data-folder-of-the-user/data)"

# A folder that does not exist is created in the run's version of the folder around it. Static addresses are also kept
# if the subnet is written with an address of the network.
cp -r "$here/compose_kinds/folder-in-data" .
mkdir folder-in-data/data
kind folder-in-data "until [ -e data/data/new/file ]; do sleep 0.05; done; echo \$ROSE_IP_db"
logged workload.log '^172\.31\.7\.9$'
[ -z "$(ls -A folder-in-data/data)" ] || fail "the user's folder was changed: $(ls folder-in-data/data)"

# Podman commands that create containers with the same volumes at the same time wait for each other for ever.
all_up='for node in a b c d e f; do until grep -q up $node/stdout.log; do sleep 0.05; done; done; echo all'
kind shared-volumes "$all_up" a
logged workload.log '^all$'

kind host-gateway 'cd "/proc/$(cat "$ROSE_PIDFILE_app")/root" && grep host.docker.internal etc/hosts'
logged workload.log '^10\.77\.0\.254.*host\.docker\.internal'

kind project-container-names "$(wait_for web-2/stdout.log shop)" web-1
logged web-2/stdout.log '^10\.77\.0\.1 +.*shop-web-1'
logged web-2/stdout.log '^10\.77\.0\.2 +.*shop-web-2'
logged web-2/stdout.log '^0  shop$'

# Services query the run's name server directly, without /etc/hosts, for the names of the run's containers. One of these
# services is a name server itself.
kind name-server "$(wait_for app/stdout.log options) && $(wait_for names/stdout.log name.server)" app
logged app/stdout.log '^10\.77\.0\.2 +STREAM'
logged app/stdout.log '^10\.77\.0\.3 +STREAM'
logged app/stdout.log '^10\.77\.0\.1 +app'
logged app/stdout.log '^not outside$'
logged app/stdout.log '^nameserver 127\.0\.0\.11$'
! grep -q nameserver "$run/names/stdout.log" || fail "a name server asks another one: $(cat "$run/names/stdout.log")"

kind pwd "$(wait_for app/stdout.log configuration)"
logged app/stdout.log '^the configuration$'

kind dotenv-comments "$(wait_for app/stdout.log APP_TEXT=two)"
for line in APP_PORT=8080 APP_URL=http://db:5432 APP_NAME=spaced APP_TEXT=two; do logged app/stdout.log "^$line\$"; done

# The shell executes only the first word of this health check, and the other words are its $0 and $1. So the check
# always fails. No other service depends on this one, so it runs nevertheless.
kind cmd-shell-words "$(wait_for_up db)"
logged workload.log up
says err 'node db is not healthy'
kind image-healthcheck 'podman exec "$ROSE_CONTAINER_app" id'
logged workload.log '^uid=0'
logged health-db.log localhost

kind low-ports "$(wait_for web/stdout.log 2147483647) && $(wait_for own/stdout.log .)"
logged web/stdout.log '^0$'
logged own/stdout.log '^512$'

# A node that ends repeatedly may look like one that starts slowly, so the message says how often it ended.
cp -r "$here/compose_kinds/restart-loop" restart-loop
cat > restart-loop/rose.toml <<TOML
[deployment]
compose = "compose.yaml"
engine = $engine_toml
[[node]]
name = "db"
ready = { tcp = 5432, timeout = "3s" }
[workload]
command = ["true"]
TOML
expect 4 "$rose" profile -c restart-loop/rose.toml
says err 'variables of .environment. without a value, .*: ROSE_TEST_UNSET'
says err 'was not ready within 3s: .*; its restart policy started it [0-9]+ times, and it last exited with status'
nothing_left "after a service that ends again and again"
no_containers "after a service that ends again and again"

kind shell-operators "$(wait_for app/stdout.log started) && $(wait_for_up log)"
logged app/stdout.log '^started$'
logged workload.log up

# rose init refuses a file that cannot be used, gives all reasons, and keeps the user's choices.
for name in refused-quietly all-profiles missing-tool; do cp -r "$here/compose_kinds/$name" "$name"; done
expect 2 "$rose" init --compose refused-quietly/compose.yaml -o refused-quietly/rose.toml
says out "compose.yaml:3: 'image' is empty: IMAGE has no value"
says out "not-here.env is not a readable file"
expect 2 "$rose" init --compose refused-quietly/compose.yaml -o refused-quietly/rose.toml --json
json_is 'j["config"], len(j["doubts"])' '(None, 2)'
[ ! -e refused-quietly/rose.toml ] || fail "a draft was written for a file that cannot be used"

expect 2 "$rose" init --compose all-profiles/compose.yaml -o all-profiles/rose.toml
says out 'all, cluster, standalone'
says out 'COMPOSE_PROFILES'
expect 0 "$rose" init --compose all-profiles/compose.yaml --compose-profile cluster -o all-profiles/rose.toml --json
json_is 'j["nodes"]' "['two']"
grep -q 'compose_profiles = \["cluster"\]' all-profiles/rose.toml || fail "the profile is not in the draft"

if ! command -v etcdctl >/dev/null; then
  expect 0 "$rose" init --compose missing-tool/compose.yaml -o missing-tool/rose.toml
  grep -q 'The example needs etcdctl, which is not in PATH here' missing-tool/rose.toml ||
    fail "a tool that is missing is not reported"
fi

# A running process is found by its working directory. A run works in an overlay of that folder, and never in the folder
# itself.
cp -r "$here/compose_kinds/pid-cwd" pid-cwd
sh pid-cwd/start.sh
until_true 20 bash -c 'exec 3<>/dev/tcp/127.0.0.1/7802' || exit 1
expect 0 "$rose" init --pid "$(cat pid-cwd/app.pid)" -o drafted.toml --json
node=$(json 'j["nodes"][0]')
kill "$(cat pid-cwd/app.pid)"
# The process listens at 127.0.0.1, so it can be reached only from its own network.
cat > asks.sh <<SH
#!/bin/sh
exec ip netns exec "\$ROSE_NETNS_$node" bash -c 'until exec 3<>/dev/tcp/127.0.0.1/7802; do sleep 0.1; done; echo served'
SH
chmod +x asks.sh
sed -i 's|^command = "?"|command = ["./asks.sh"]|' drafted.toml
printf '\n[oracle]\ncommand = ["false"]\n' >> drafted.toml
{ cat calm; echo "node = \"$node\""; } > calm.toml
find pid-cwd -type f | sort > before
expect 1 "$rose" replay calm.toml -c drafted.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
logged workload.log '^served$'
! grep -q 'No module' "$run/$node/stderr.log" || fail "the program is not found: $(cat "$run/$node/stderr.log")"
find pid-cwd -type f | sort | diff before - || fail "the process's folder was changed"
nothing_left "after a drafted process"
