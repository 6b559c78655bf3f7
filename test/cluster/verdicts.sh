#!/usr/bin/env bash
# Verdicts and exit codes: a fault that never fires, oracles that cannot decide, and bugs that occur without faults.
. "$(dirname "$0")/common.bash"
cd "$work"

# config NAME ORACLE [WORKLOAD]: configures two nodes that each append to a file ten times a second.
config() {
  cat > "$1" <<TOML
name = "verdicts"
[[node]]
name = "a"
command = ["/bin/sh", "-c", "while :; do echo x >> \$0; sleep 0.1; done", "\${dir}/log"]
ready = { command = ["test", "-s", "a/log"], timeout = "60s" }
[[node]]
name = "b"
command = ["/bin/sh", "-c", "while :; do echo x >> \$0; sleep 0.1; done", "\${dir}/log"]
[workload]
command = ["${3:-/bin/true}"]
timeout = "10s"
[oracle]
command = [$2]
timeout = "30s"
TOML
}
config hit.toml '"/bin/true"'
config miss.toml '"/bin/false"'
config unsure.toml '"/bin/sh", "-c", "exit 2"'
config told.toml '"/bin/sh", "-c", "echo the other half; echo cannot look >&2; exit 2"'
config hang.toml '"/bin/sleep", "100"'
sed -i 's/timeout = "30s"/timeout = "500ms"/' hang.toml
config missing.toml '"/nonexistent/oracle"'

cat > never.toml <<'TOML'
version = 1
name = "never"
[[fault]]
id = "unreached"
kind = "syscall"
node = "a"
syscall = "openat"
path = "*/no/such/file"
error = "EIO"
TOML
cat > crash.toml <<'TOML'
version = 1
name = "crash"
[[fault]]
id = "kill"
kind = "crash"
node = "b"
TOML

# If the fault never fires and the bug does not occur, the result is inconclusive, and the message names the fault and
# the reason.
expect 4 "$rose" replay never.toml -c miss.toml --runs 2 --json
json_is 'j["verdict"]' inconclusive
json_is 'j["faults"][0]["id"], j["faults"][0]["requested"], j["faults"][0]["fired"]' "('unreached', 2, 0)"
expect 4 "$rose" replay never.toml -c miss.toml --runs 1
says out unreached
# How the workload ended is reported. It does not change the verdict.
config works-ill.toml '"/bin/true"' /bin/false
expect 0 "$rose" replay crash.toml -c works-ill.toml --runs 2 --json
json_is 'j["run_results"][1]["workload"]' 'exited with status 1'
says err 'the workload exited with status 1 in 2 of 2 runs'

# If a workload did not begin its work, the run is inconclusive, and the workload's output is shown.
config lost.toml '"/bin/false"' /bin/sh
sed -i 's#\["/bin/sh"\]#["/bin/sh", "-c", "echo looking for it; exec no-such-workload"]#' lost.toml
expect 4 "$rose" replay crash.toml -c lost.toml --runs 1 --json
json_is 'j["run_results"][0]["reason"].startswith("the workload did no work: it exited with status 127: ")' True
says out no-such-workload
expect 4 "$rose" trace -c lost.toml -o lost.bin
says out 'the workload did no work'

# If the fault never fires but the bug occurs, then the bug occurs without faults, so the run reproduces nothing.
expect 4 "$rose" replay never.toml -c hit.toml --runs 1 --json
json_is 'j["run_results"][0]["verdict"]' inconclusive
# An oracle that cannot decide never leads to a verdict.
for oracle in unsure hang; do
  expect 4 "$rose" replay crash.toml -c $oracle.toml --runs 1 --json
  json_is 'j["reproduced"], j["not_reproduced"], j["inconclusive"]' "(0, 0, 1)"
done
"$rose" replay crash.toml -c missing.toml --runs 1 >out 2>err && status=0 || status=$?
[ $status -eq 4 ] || [ $status -eq 2 ] || fail "a missing oracle gave exit $status"
expect 4 "$rose" replay crash.toml -c told.toml --runs 1
says out 'the oracle exited with status 2: cannot look'
says err 'last lines of oracle.log:'
says err '^(rose: )?the other half'
# The verdicts `reproduced` and `not reproduced`, and --expect fixed for the patched build.
expect 0 "$rose" replay crash.toml -c hit.toml --runs 3 --json
json_is 'j["verdict"], j["rate"], j["reproduced"], j["faults"][0]["fired"]' "('reproduced', 1.0, 3, 3)"
expect 1 "$rose" replay crash.toml -c miss.toml --runs 3
expect 0 "$rose" replay crash.toml -c miss.toml --runs 3 --expect fixed --junit junit.xml --json
json_is 'round(j["rate_upper_bound"], 2)' 0.63
python3 -c 'import xml.dom.minidom,sys; xml.dom.minidom.parse("junit.xml")' || fail "junit.xml is not XML"
expect 1 "$rose" replay crash.toml -c hit.toml --runs 2 --expect fixed
expect 4 "$rose" replay never.toml -c miss.toml --runs 2 --expect fixed
# The failure of a workload is reported. It never decides the verdict.
config false.toml '"/bin/true"' /bin/false
expect 0 "$rose" replay crash.toml -c false.toml --runs 1
# A diagnosis with such a workload is useless, which is reported after the run without faults.
echo '{"ts":1763755200000000000,"node":"a","type":"scf","pid":41,"tid":41,"syscall":"openat","errno":"EIO","fd":null,"path":"/srv/a","peer":null}' > one.jsonl
config useless.toml '"/bin/false"' /bin/false
printf '[diagnose]\nmax_runs = 1\n' >> useless.toml
"$rose" diagnose --trace one.jsonl -c useless.toml >out 2>err || true
says err 'control run without faults: the workload exited with status 1'
# A node does not become ready, and a command does not exist.
sed 's#"test", "-s", "a/log"#"false"#; s/10s/300ms/' miss.toml > unready.toml
expect 4 "$rose" replay crash.toml -c unready.toml --runs 1
says out 'a'
sed '0,/"\/bin\/sh"/s//"\/nonexistent\/server"/' miss.toml > nocommand.toml
expect 2 "$rose" replay crash.toml -c nocommand.toml --runs 1
says err nonexistent/server
# A fault in a node that does not exist is refused before anything starts.
sed 's/node = "b"/node = "c"/' crash.toml > badnode.toml
expect 2 "$rose" replay badnode.toml -c miss.toml
says err "'c'"
# trace -c plans no fault, so the oracle alone decides. The dump is always written.
cat > until-killed.sh <<'SH'
#!/bin/sh
# In a run with an incident, the workload must not end before the incident.
until [ ! -d "/proc/$(cat "$ROSE_PIDFILE_b")" ] || grep -q '^State:.Z' "/proc/$(cat "$ROSE_PIDFILE_b")/status"; do sleep 0.02; done
SH
chmod +x until-killed.sh
config hit.toml '"/bin/true"' ./until-killed.sh
config miss.toml '"/bin/false"' ./until-killed.sh
config unsure.toml '"/bin/sh", "-c", "exit 2"' ./until-killed.sh
for pair in hit:0 miss:1 unsure:4; do
  rm -f dump.bin
  expect "${pair#*:}" "$rose" trace -c "${pair%:*}.toml" --incident 'kill -9 "$(cat "$ROSE_PIDFILE_b")"' -o dump.bin \
    --json
  [ -s dump.bin ] || fail "no dump after trace -c ${pair%:*}.toml"
done
config miss.toml '"/bin/false"'
# A missing script is refused before anything starts, and nothing is overwritten.
cp dump.bin before.bin
expect 2 "$rose" trace -c miss.toml --incident './no-such-incident.sh now' -o dump.bin
says err 'incident: ./no-such-incident.sh does not exist'
printf 'exit 0\n' > plain.sh
expect 2 "$rose" trace -c miss.toml --incident ./plain.sh -o dump.bin
says err 'plain.sh cannot be executed'
cmp dump.bin before.bin || fail "a run that was not made overwrote a dump"
chmod +x plain.sh
expect 2 "$rose" trace -c miss.toml --incident plain.sh -o dump.bin
says err "for the file in this folder write './plain.sh'"
expect 4 "$rose" trace -c miss.toml --incident 'no-such-command' -o lost.bin
says out 'the incident did no work'
# An incident whose path is relative to the current folder runs in the run's folder. Its output is reported.
printf '#!/bin/sh\necho "no such disk in $(basename "$PWD")" >&2\nexit 7\n' > incident.sh
chmod +x incident.sh
expect 1 "$rose" trace -c miss.toml --incident './incident.sh now' -o other.bin --json
says out "status 7: no such disk in run-[0-9]{10}"
expect 0 "$rose" dump show dump.bin --type ps --node b
says out SIGKILL
nothing_left "after all runs"
