#!/usr/bin/env bash
# `replay --expect fixed` passes only if the faults had an effect and the workload did its work.
. "$(dirname "$0")/common.bash"
export TMPDIR=$work
cd "$work"

# A node that answers each line at port 7000, and a workload that sends it requests for a second.
cat > node.py <<'PY'
import socket, sys, threading
server = socket.create_server((sys.argv[1], 7000))
print("up", flush=True)
def serve(connection):
    with connection, connection.makefile("rwb") as lines:
        for line in lines:
            lines.write(line)
            lines.flush()
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
PY
cat > ask.py <<'PY'
import os, socket, sys, time
with socket.create_connection((os.environ["ROSE_IP_n1"], 7000), timeout=10) as connection:
    lines = connection.makefile("rwb")
    until = time.monotonic() + 0.6
    while time.monotonic() < until:
        lines.write(b"x\n")
        lines.flush()
        if lines.readline() != b"x\n":
            sys.exit(1)
        time.sleep(0.01)
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
PY

# configuration WORKLOAD [ORACLE]: the arguments are elements of a list, in TOML.
configuration() {
  cat > rose.toml <<TOML
name = "no-proof"
[deployment]
network = "netns"
subnet = "10.251.41.0/24"
[[node]]
name = "n1"
command = ["python3", "$work/node.py", "\${ip}"]
ready = { log = "up" }
[[node]]
name = "n2"
command = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"]
ready = { log = "up" }
[workload]
command = [$1]
timeout = "30s"
[oracle]
command = [${2:-"\"/bin/false\""}]
timeout = "10s"
TOML
}
# fault KIND-AND-KEYS [NODE]: writes s.toml
fault() { printf 'version = 1\n[[fault]]\nid = "f"\nnode = "%s"\n%b\n' "${2:-n1}" "$1" > s.toml; }
asks="\"python3\", \"$work/ask.py\""

# Without faults, the workload exchanges data with a node, and the profile records this.
configuration "$asks"
expect 0 "$rose" profile -c rose.toml
python3 -c 'import json; w = json.load(open("profile.json"))["workload"]; assert w["runs"] == 1 and w["failed"] == 0 and w["sent"] > 10 and w["received"] > 10, w' ||
  fail "the profile does not contain the workload's exchanged data: $(grep -A5 '"workload"' profile.json)"

# If the faults had an effect and the workload did its work, the exit code is 0, and the bound of the rate is printed.
# This also holds without a profile, but then a message reports its absence.
fault 'kind = "pause"\nduration = "100ms"'
expect 0 "$rose" replay s.toml -c rose.toml --runs 3 --expect fixed --json --junit good.xml
json_is 'j["verdict"], j["passed"], j["faults"][0]["fired"], j["faults"][0]["effective"]' \
  "('not-reproduced', True, 3, 3)"
json_is 'round(j["rate_upper_bound"], 2)' 0.63
json_is '"unchecked" in j' False
mv profile.json kept.json
expect 0 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed
says out 'not checked: whether the workload exchanges data .* no profile in .* records it'
expect 0 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --profile kept.json
! grep -q 'not checked' out || fail "a missing profile is reported although one was given: $(cat out)"
expect 2 "$rose" replay s.toml -c rose.toml --runs 1 --profile none.json
mv kept.json profile.json

# These faults fire, but have no effect.
not_effective() {
  fault "$1" "${3:-n1}"
  expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json --junit j.xml
  json_is 'j["verdict"], j["passed"], j["faults"][0]["fired"], j["faults"][0]["effective"]' \
    "('inconclusive', False, 1, 0)"
  json_is 'j["run_results"][0]["reason"]' "fault 'f' had no effect: $2"
  grep -q "had no effect: $2" j.xml || fail "the JUnit report lacks the reason: $(cat j.xml)"
  expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed
  says out "fault f: fired in 1 of 1 run, effective in 0 \($2\)"
}
not_effective 'kind = "partition"\npeers = ["10.99.99.99"]' 'no packet was stopped'
not_effective 'kind = "disk-full"\npath = "unused"' 'no call of n1 failed for lack of disk space'
not_effective 'kind = "descriptors"\nlimit = 100000' 'no call of n1 reached the limit'
not_effective 'kind = "memory"\nlimit = "4GiB"' 'n1 never reached the limit'
not_effective 'kind = "crash"\nsignal = "SIGTERM"' 'SIGTERM ended no process of n2' n2
# An optional fault may have no effect, but at least one fault must have had one.
printf 'optional = true\n' >> s.toml
expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed
says out 'no fault was effective in any run'
printf '[[fault]]\nid = "g"\nnode = "n2"\nkind = "crash"\n' >> s.toml
expect 0 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed
says out 'optional fault f: fired in 1 of 1 run, effective in 0'
# If a bug occurs although the fault has no effect, it also occurs without faults.
configuration "$asks" '"/bin/true"'
fault 'kind = "partition"\npeers = ["10.99.99.99"]'
expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --json
json_is 'j["run_results"][0]["reason"].startswith("reproduces without faults")' True

# These workloads do no work.
fault 'kind = "pause"\nduration = "50ms"'
no_work() {
  expect 4 "$rose" replay s.toml -c rose.toml --runs 2 --expect fixed --json --junit j.xml
  json_is 'j["verdict"], j["passed"], j["run_results"][1]["verdict"]' "('inconclusive', False, 'inconclusive')"
  says out "$1"
  grep -q "$1" j.xml || fail "the JUnit report lacks the reason: $(cat j.xml)"
}
configuration '"/bin/true"'
no_work 'the workload exchanged no data with any node, although it does without faults'
configuration '"/bin/false"'
no_work 'the workload exchanged no data with any node, although it does without faults; it exited with status 1'
rm profile.json
no_work 'the workload did no work: it exited with status 1 and exchanged no data with any node'
# The workload reaches the node, and fails before the fault.
configuration "$asks, \"3\""
fault 'kind = "crash"\nwhen = [ { elapsed = "3s" } ]'
no_work 'the workload did no work: it exited with status 3 before any fault fired'
# The workload reaches the node, and fails after the fault, and no profile says how it ends without faults.
fault 'kind = "pause"\nduration = "50ms"'
expect 4 "$rose" replay s.toml -c rose.toml --runs 2 --expect fixed --json
json_is '[r["verdict"] for r in j["run_results"]]' "['not-reproduced', 'not-reproduced']"
says out 'no profile says that it does its work without faults'

# Nodes that cannot start, or that end by themselves before any fault, are a reason for doubt, unless the profile shows
# that this also happens in runs without faults.
configuration '"sleep", "0.3"'
sed -i '/^ready/d; s/^command = ."sh", "-c", "trap.*/command = ["sh", "-c", "exec no-such-server"]/' rose.toml
fault 'kind = "pause"\nduration = "50ms"\nwhen = [ { elapsed = "100ms" } ]'
expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json
json_is 'j["run_results"][0]["reason"]' \
  "node n2 exited with status 127 before any fault fired, and was down at the end"
says err '^(rose: )?.*no-such-server'
expect 0 "$rose" profile -c rose.toml
expect 0 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed
rm profile.json
mkfifo profile.json
expect 2 timeout 60 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed
says err 'profile.json is not a regular file'
rm profile.json
# A workload that does nothing until it times out.
configuration '"sleep", "1000"'
sed -i 's/timeout = "30s"/timeout = "500ms"/' rose.toml
no_work 'the workload did no work: it timed out after 500ms and exchanged no data with any node'

# If rose has used up its descriptors, it cannot restart a node that is down.
fault 'kind = "crash"'
cat > starve.sh <<'SH'
#!/bin/sh
while [ -s "$ROSE_PIDFILE_n1" ]; do sleep 0.02; done
prlimit --pid $PPID --nofile=16:
sleep 1
prlimit --pid $PPID --nofile=1024:
SH
chmod +x starve.sh
configuration "\"$work/starve.sh\""
sed -i '0,/^ready/s//restart = { delay = "500ms", max = 5 }\n&/' rose.toml
expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json
json_is 'j["run_results"][0]["reason"].startswith("restart of node n1")' True

# The kernel kills a node for lack of memory, after the fault.
if memory=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts) && [ -n "$memory" ]; then
  mkdir "$memory/expect-fixed-$$"
  echo 16M > "$memory/expect-fixed-$$/memory.limit_in_bytes"
  cat > eats.sh <<SH
#!/bin/sh
echo up
until test -e "$work/eat"; do sleep 0.02; done
echo \$\$ > "$memory/expect-fixed-$$/cgroup.procs"
exec tail /dev/zero
SH
  chmod +x eats.sh
  cat > feed.sh <<SH
#!/bin/sh
sleep 0.2
touch "$work/eat"
while [ -s "\$ROSE_PIDFILE_n2" ]; do sleep 0.02; done
SH
  chmod +x feed.sh
  configuration "\"$work/feed.sh\""
  sed -i "s|^command = .\"sh\", \"-c\", \"trap.*|command = [\"$work/eats.sh\"]|" rose.toml
  fault 'kind = "pause"\nduration = "50ms"'
  expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json
  json_is 'j["run_results"][0]["reason"]' \
    "node n2 was killed by signal 9 (Killed): the kernel ended it for lack of memory"
  rmdir "$memory/expect-fixed-$$"
fi

# These runs are inconclusive, too: the disk is full, the oracle's output is endless, or a node never becomes ready.
mkdir small
mount -t tmpfs -o size=8M,mode=711 rose-no-proof small
configuration '"sh", "-c", "until [ $(df --output=avail . | tail -1) = 0 ]; do sleep 0.05; done"'
sed -i 's/^command = \["sh", "-c", "trap.*/command = ["sh", "-c", "echo up; exec yes fills the disk of the run"]/' \
  rose.toml
TMPDIR=$work/small expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json
json_is '"was full: what was written may be cut short" in j["run_results"][0]["reason"]' True
umount -l "$work/small"
# Another process fills the disk for a while.
mount -t tmpfs -o size=8M,mode=711 rose-no-proof small
configuration '"sh", "-c", "until [ $(df --output=avail . | tail -1) = 0 ]; do sleep 0.05; done; sleep 2; rm n2/fill"'
sed -i 's/^command = \["sh", "-c", "trap.*/command = ["sh", "-c", "echo up; yes > fill; exec sleep 1000"]/' rose.toml
TMPDIR=$work/small expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json
json_is '"was full: what was written may be cut short" in j["run_results"][0]["reason"]' True
umount -l "$work/small"
# The disk is full for 50 ms only. This is noticed nevertheless, because rose checks the disk often, and because a trace
# shows the call that failed.
mount -t tmpfs -o size=8M,mode=711 rose-no-proof small
configuration '"sh", "-c", "touch n2/go; until [ -e n2/freed ]; do sleep 0.05; done"'
cat > fill.sh <<'SH'
echo up
until [ -e go ]; do sleep 0.02; done
yes > fill
sleep 0.05
rm fill
touch freed
exec sleep 1000
SH
sed -i "s|^command = ..sh\", \"-c\", \"trap.*|command = [\"sh\", \"$work/fill.sh\"]|" rose.toml
for options in "" "--report $work/small/report"; do
  TMPDIR=$work/small expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json $options
  json_is '"was full" in j["run_results"][0]["reason"]' True
done
umount -l "$work/small"
configuration "$asks" '"yes"'
expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json --keep
json_is 'j["run_results"][0]["reason"]' 'the oracle could not decide: the oracle wrote more than 64 MiB and was ended'
[ "$(stat -c %s "$(python3 -c 'import json; print(json.load(open("out"))["run_results"][0]["directory"])')/oracle.log")" -le $((64 << 20)) ] ||
  fail "the oracle's log is longer than 64 MiB"
configuration "$asks"
sed -i 's/log = "up"/log = "never", timeout = "500ms"/' rose.toml
expect 4 "$rose" replay s.toml -c rose.toml --runs 1 --expect fixed --json
json_is '"n1" in j["run_results"][0]["reason"]' True
