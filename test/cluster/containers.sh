#!/usr/bin/env bash
# Tests nodes in containers: faults at exact calls, pauses, crashes and restarts, partitions, logs, volumes and users.
# Nothing is left behind, even if rose is killed. A real engine runs an image that does not come from a registry.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
cd "$work"
export TMPDIR=$work
cat > victim.c <<'C'
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
/* Prints what its arguments request, exchanges messages with its peer, and creates folders. */
static void* answer(void* unused) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000)};
  int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(s, (struct sockaddr*)&at, sizeof at) || listen(s, 8)) exit(3);
  for (;;) close(accept(s, 0, 0));
  return unused;
}
__attribute__((noinline)) void beat(int n) {
  char name[256];
  snprintf(name, sizeof name, "%s/made.%d", getenv("WHERE"), n);
  int err = mkdir(name, 0755) ? errno : 0;
  printf("mkdir %d = %s\n", n, err ? strerror(err) : "ok");
}
int main(int argc, char** argv) {
  setvbuf(stdout, 0, _IONBF, 0);
  printf("began as %d with %s in %s\n", getuid(), argc > 1 ? argv[1] : "nothing", getenv("WHERE"));
  fprintf(stderr, "pid %d\n", getpid());
  pthread_t thread;
  pthread_create(&thread, 0, answer, 0);
  for (int n = 1;; n++) { beat(n); usleep(20000); }
}
C
gcc -static -g -O1 -pthread -o victim victim.c
mkdir -p root/bin root/data root/etc
cp victim root/bin/
echo 'keeper:x:4321:4321::/data:/bin/false' > root/etc/passwd
import_image root localhost/rosevictim:1 --change 'ENTRYPOINT ["/bin/victim"]' --change 'CMD ["usual"]' \
  --change 'ENV WHERE=/data'

cat > workload.sh <<'SH'
#!/bin/sh
# The workload lasts until the victims have printed enough for the planned faults.
while [ "$(grep -c mkdir n1/stdout.log)" -lt ${BEATS:-60} ] || [ "$(grep -c began n2/stdout.log)" -lt ${BEGINS:-1} ]; do sleep 0.05; done
SH
chmod +x workload.sh
cat > rose.toml <<TOML
name = "containers"
[deployment]
engine = $engine_toml
[[node]]
name = "n1"
image = "localhost/rosevictim:1"
command = ["asked"]
user = "keeper"
env = { WHERE = "\${dir}/made" }
volumes = ["\${dir}/made:/data"]
ready = { tcp = 7000 }
[[node]]
name = "n2"
image = "localhost/rosevictim:1"
ready = { log = "mkdir 1 " }
restart = { delay = "100ms" }
[workload]
command = ["./workload.sh"]
timeout = "60s"
[oracle]
command = ["grep", "-q", "mkdir 17 = Input/output error", "n1/stdout.log"]
TOML
{ echo 'version = 1'; mkdir_fails; } > faults.toml
cat >> faults.toml <<'TOML'
[[fault]]
id = "stall"
kind = "pause"
node = "n2"
duration = "300ms"
when = [ { log = "mkdir 1 ", node = "n2" }, { syscall = "mkdir", path = "*/made.*", count = 5, node = "n1" } ]
[[fault]]
id = "die"
kind = "crash"
node = "n2"
after = ["stall"]
when = [ { elapsed = "400ms" }, { log = "mkdir", node = "n2" } ]
TOML

BEGINS=2 expect 0 "$rose" replay faults.toml -c rose.toml --runs 2 --keep --json
json_is '[f["fired"] for f in j["faults"]]' '[2, 2, 2]'
json_is 'j["reproduced"]' 2
run=$(json 'j["run_results"][0]["directory"]')
# n1 has its own user, its own command after the image's entry point, its volume in the node's folder, and its output in
# the node's logs.
grep -q "^began as 4321 with asked in .*/n1/made$" "$run/n1/stdout.log" || fail "n1: $(head -1 "$run/n1/stdout.log")"
grep -q '^pid 1$' "$run/n1/stderr.log" || fail "n1 is not the first process of its container"
[ "$(grep -c 'Input/output' "$run/n1/stdout.log")" = 1 ] || fail "more or fewer than one call failed"
[ ! -e "$run/n1/made/made.17" ] && [ -e "$run/n1/made/made.16" ] && [ -e "$run/n1/made/made.18" ] ||
  fail "the failed call was made, or its neighbours were not"
# n2 uses the command and the variables of the image. After the crash it is the same container and still has its files.
[ "$(grep -c '^began as 0 with usual in /data$' "$run/n2/stdout.log")" = 2 ] ||
  fail "n2: $(grep began "$run/n2/stdout.log")"
grep -q '^mkdir 1 = File exists$' "$run/n2/stdout.log" || fail "n2 lost its files when it was restarted"
[ ! -e "$run/.rose-enter" ] || fail "the entry point's folder was left"
nothing_left "after a replay"
no_containers "after a replay"

# The container sees the run's folder. Its root user can write to the nodes' folders, but not beside them, because rose
# writes files there by name.
sed -e 's|^env = .*|env = { WHERE = "${run_dir}" }|' -e '/^user = /d' -e '/^volumes = /d' \
  -e 's|^ready = { log = .*|env = { WHERE = "${run_dir}/n1" }\n&|' rose.toml > whole.toml
printf 'version = 1\n[[fault]]\nid = "stall"\nkind = "pause"\nnode = "n2"\nduration = "10ms"\n' > stall.toml
expect 1 "$rose" replay stall.toml -c whole.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
grep -q '^began as 0 ' "$run/n1/stdout.log" && grep -q '^mkdir 1 = Read-only file system$' "$run/n1/stdout.log" ||
  fail "the run's folder could be written: $(head -3 "$run/n1/stdout.log")"
grep -q '^mkdir 1 = ok$' "$run/n2/stdout.log" && [ -d "$run/n1/made.1" ] ||
  fail "another node's folder could not be written: $(head -3 "$run/n2/stdout.log")"

# Nodes reach each other by name. A workload stops, starts and queries nodes. Two runs are made in parallel.
cat > asks.sh <<'SH'
#!/bin/sh
set -e
rose node status n2
rose node stop n2
rose node status n2 | grep -q down
rose node start n2
root=/proc/$(cat "$ROSE_PIDFILE_n1")/root
grep -q "$ROSE_IP_n2.n2" "$root/etc/hosts"
SH
chmod +x asks.sh
cat > cut.toml <<'TOML'
version = 1
[[fault]]
id = "cut"
kind = "partition"
node = "n2"
duration = "200ms"
optional = true  # no packet is sent while the fault lasts
TOML
sed -i 's|./workload.sh|./asks.sh|' rose.toml
expect 1 "$rose" replay cut.toml -c rose.toml --runs 2 --jobs 2 --json
json_is 'j["faults"][0]["fired"]' 2
json_is 'j["inconclusive"]' 0
nothing_left "after runs side by side"

# The tracer records which process ends, and how.
cat > ends.sh <<'SH'
#!/bin/sh
sleep 0.2
kill -9 "$(cat "$ROSE_PIDFILE_n2")"
SH
chmod +x ends.sh
sed -i 's|./asks.sh|./workload.sh|' rose.toml
expect 1 "$rose" trace -c rose.toml --incident ./ends.sh -o dump.bin
expect 0 "$rose" dump show dump.bin --type ps --format jsonl
python3 - "$work/out" <<'PY' || fail "the crash is not in the dump"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
sys.exit(0 if any(e.get("node") == "n2" and e.get("type") == "ps" and "crash" in json.dumps(e) for e in events) else 1)
PY

# `rose init` drafts a running container as a node with its image, command, variables and volumes, without touching it.
podman run -d --name original --network none --workdir /bin -e WHERE=/kept -v kept:/kept \
  --cap-add SYS_NICE localhost/rosevictim:1 drafted >/dev/null
printf '#!/bin/sh\nuntil [ "$(grep -c mkdir original/stdout.log)" -ge 20 ]; do sleep 0.05; done\n' > drafted.sh
chmod +x drafted.sh
expect 0 "$rose" init --container original -o drafted.toml
podman rm -f -t 0 -v original >/dev/null
says drafted.toml 'image   = "localhost/rosevictim:1"'
sed -i 's|^command = "?"|command = ["./drafted.sh"]|; s|^# \[oracle\]|[oracle]|; s|^# command = \["grep".*|command = ["grep", "-q", "mkdir 9 = Input/output error", "original/stdout.log"]|' drafted.toml
cat > drafted-fault.toml <<'TOML'
version = 1
[[fault]]
id = "eio"
kind = "syscall"
node = "original"
syscall = "mkdir"
path = "/kept/made.*"
count = 9
error = "EIO"
TOML
expect 0 "$rose" replay drafted-fault.toml -c drafted.toml --runs 1 --keep --json
json_is 'j["reproduced"]' 1
grep -q '^began as 0 with drafted in /kept$' "$(json 'j["run_results"][0]["directory"]')/original/stdout.log" ||
  fail "the drafted node runs another program"
nothing_left "after a drafted one"
no_containers "after a drafted one"

# A configuration that is impossible is refused with one clear message.
sed 's|command = \["asked"\]|&\nbinary = 7|' rose.toml > wrong.toml
expect 2 "$rose" replay faults.toml -c wrong.toml --runs 1
sed 's|^image = .*|image = "localhost/no-such-image:1"|' rose.toml > wrong.toml
expect 2 "$rose" replay faults.toml -c wrong.toml --runs 1
says err "no-such-image"
cat > none.toml <<TOML
[deployment]
engine = $engine_toml
[[node]]
name = "n1"
image = "localhost/empty:1"
command = ["/bin/none"]
[workload]
command = ["true"]
[oracle]
command = ["true"]
TOML
import_image root localhost/empty:1
printf 'version = 1\n[[fault]]\nid = "die"\nkind = "crash"\nnode = "n1"\n' > die.toml
expect 2 "$rose" replay die.toml -c none.toml --runs 1
says err "no command '/bin/none'"
nothing_left "after refusals"
no_containers "after refusals"

# When rose was killed, `rose heal` undoes everything. After Ctrl-C, rose itself does so before it ends.
BEATS=1000000 signalled KILL report/runs/run-0001/n1/stdout.log 'mkdir 20 = ' "$rose" replay faults.toml -c rose.toml \
  --runs 1 --report report
expect 0 "$rose" heal
says out 'container rose-[0-9a-f]*-n1: removed'
nothing_left "after heal"
no_containers "after heal"
BEATS=1000000 signalled INT report2/runs/run-0001/n1/stdout.log 'mkdir 20 = ' "$rose" replay faults.toml -c rose.toml \
  --runs 1 --report report2
nothing_left "after Ctrl-C"
no_containers "after Ctrl-C"
