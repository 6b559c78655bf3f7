#!/usr/bin/env bash
# Tests nodes that rose did not start, in their own cgroups. For crashes, pauses, partitions and conditions on
# functions, such a node needs no preparation; for system call faults, it must have been started by `rose exec`. Outside
# a run, `rose exec` only executes the command. The command outlives rose.
. "$(dirname "$0")/common.bash"
command -v gcc >/dev/null || skip "no gcc"
cd "$work"
export TMPDIR=$work  # kept runs are removed with it
cat > victim.c <<'C'
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((noinline)) void beat(int n) {
  char name[32], line[96];
  snprintf(name, sizeof name, "made.%d", n);
  int err = mkdir(name, 0755) ? errno : 0;
  int size = snprintf(line, sizeof line, "mkdir %d = %s\n", n, err ? strerror(err) : "ok");
  if (write(1, line, (size_t)size) < 0) _exit(1);
}
int main(void) {
  setvbuf(stdout, 0, _IONBF, 0);
  for (int n = 1;; n++) { beat(n); usleep(20000); }
}
C
gcc -g -O1 -o victim victim.c

cat > setup.sh <<'SH'
#!/bin/sh
mkdir -p one two
cd one
setsid "$ROSE_EXE" exec --node n1 -- "$HERE/victim" > out 2>&1 &
echo $! > pid
cd ../two
setsid "$HERE/victim" > out 2>&1 &
echo $! > pid
SH
cat > workload.sh <<'SH'
#!/bin/sh
# The workload lasts until the victims have printed enough for the planned faults.
while [ "$(grep -c mkdir one/out)" -lt 60 ]; do sleep 0.05; done
SH
chmod +x setup.sh workload.sh
cat > rose.toml <<'TOML'
name = "attached"
[deployment]
network = "host"
setup = ["./setup.sh"]
[[node]]
name = "n1"
attach = { pid_file = "one/pid", exec = true }
[[node]]
name = "n2"
attach = { pid_file = "two/pid" }
binary = "./victim"
[workload]
command = ["./workload.sh"]
timeout = "60s"
[oracle]
command = ["grep", "-q", "mkdir 7 = Input/output error", "one/out"]
TOML
export HERE=$work
{ echo 'version = 1'; mkdir_fails 7; cat <<'TOML'; } > syscall.toml
[[fault]]
id = "stall"
kind = "pause"
node = "n2"
duration = "300ms"
when = [ { syscall = "mkdir", path = "*/made.12", node = "n1" }, { function = "beat", count = 3 } ]
[[fault]]
id = "die"
kind = "crash"
node = "n2"
after = ["stall"]
when = [ { elapsed = "400ms" } ]
TOML
# Without --allow-attached, faults in such nodes are refused. A node that was not started by `rose exec` gets no system
# call faults.
expect 3 "$rose" replay syscall.toml -c rose.toml --runs 1
says err allow-attached
sed 's/node = "n1"/node = "n2"/' syscall.toml > wrong.toml
expect 3 "$rose" replay wrong.toml -c rose.toml --runs 1 --allow-attached
says err 'rose exec'

expect 0 "$rose" replay syscall.toml -c rose.toml --runs 1 --allow-attached --keep --json
json_is '[f["fired"] for f in j["faults"]]' '[1, 1, 1]'
run=$(json 'j["run_results"][0]["directory"]')
[ "$(grep -c 'Input/output' "$run/one/out")" = 1 ] || fail "more or fewer than one call failed"
grep -q '^mkdir 6 = ok' "$run/one/out" && grep -q '^mkdir 8 = ok' "$run/one/out" || fail "other calls failed, too"
[ ! -e "$run/one/made.7" ] && [ -e "$run/one/made.8" ] || fail "the failed call was made"
[ "$(stat -c %a "$run/rose.exec.sock" 2>/dev/null || echo gone)" = gone ] || fail "the socket was left"

# Without a run, the command is executed without a filter.
expect 0 "$rose" exec --node n1 -- grep Seccomp: /proc/self/status
says out 'Seccomp:[[:space:]]*0'
expect 0 env ROSE_EXEC_SOCKET=/nonexistent/socket "$rose" exec --node n1 -- sh -c 'echo "$0 $1"' a "b c"
says out '^a b c$'
expect 2 "$rose" exec --node n1 -- /no/such/command

# If rose is killed, a node that was started through rose exec continues.
sed -i 's/-lt 60/-lt 1000000/' workload.sh
sed -i 's/^count = 7/count = 1000000/' syscall.toml
"$rose" replay syscall.toml -c rose.toml --runs 1 --allow-attached --report report >out2 2>err2 &
pid=$!
victim=report/runs/run-0001/one
until_true 30 grep -q 'mkdir 20 = ok' $victim/out || { cat err2 >&2; exit 1; }
[ "$(stat -c %a report/runs/run-0001/rose.exec.sock)" = 600 ] || fail "the socket is open to others"
kill -9 $pid
wait $pid 2>/dev/null || true
lines=$(wc -l < $victim/out)
more() { [ "$(wc -l < $victim/out)" -gt $((lines + 20)) ]; }
until_true 20 more || fail "the victim did not continue after rose ended"
grep -q 'not implemented' $victim/out && fail "calls failed after rose ended"
kill -9 "$(cat $victim/pid)" "$(cat report/runs/run-0001/two/pid)" 2>/dev/null || true
expect 0 "$rose" heal

# Rose is killed while a pause before a call lasts. The node's cgroup is outside those of rose; nevertheless, heal lets
# the node continue.
service=$cgroups/service
mkdir "$service"
export SERVICE=$service
sed -i 's|^mkdir -p one two|&\necho $$ > "$SERVICE/cgroup.procs"|; s|^cd ../two|exit 0|; s|^echo $! > pid|pid=$!; until grep -q mkdir out; do sleep 0.05; done; echo $pid > pid|' setup.sh
python3 - <<'PY'
import re
text = open('rose.toml').read()
open('rose.toml', 'w').write(re.sub(r'\[\[node\]\]\nname = "n2".*?\n(?=\[workload)', '', text, flags=re.S))
PY
cat > stall.toml <<'TOML'
version = 1
[[fault]]
id = "stall"
kind = "pause"
node = "n1"
duration = "1000s"
before = { syscall = "mkdir", path = "*/made.*", count = 5 }
when = [ { elapsed = "10ms" } ]  # by then the node is attached; its cgroup contains the process that keeps the filter
TOML
"$rose" replay stall.toml -c rose.toml --runs 1 --allow-attached --report report3 >out3 2>err3 &
pid=$!
until_true 30 grep -q 1 "$service/cgroup.freeze" || { cat err3 >&2; exit 1; }
kill_guardian $pid
kill -9 $pid
wait $pid 2>/dev/null || true
expect 0 "$rose" heal
says out "cgroup $service: thawed"
victim=report3/runs/run-0001/one
lines=$(wc -l < $victim/out)
until_true 20 more || fail "the victim did not continue after heal"
echo 1 > "$service/cgroup.kill"
until_true 10 rmdir "$service"
