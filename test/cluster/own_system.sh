#!/usr/bin/env bash
# Follows examples/own-system/README.md literally: runs its commands in order, and inserts its answers into the file
# that `rose init` has written.
. "$(dirname "$0")/common.bash"
for need in redis-server redis-cli python3; do
  command -v "$need" > /dev/null || skip "$need is missing"
done
page=$here/../../examples/own-system/README.md

# block LANGUAGE N: prints the Nth code block of the page in this language.
block() {
  awk -v fence="\`\`\`$1" -v n="$2" '$0 == "```" { on = 0 } on { print } $0 == fence { on = ++seen == n }' "$page"
}
blocks=$(grep -c '^```sh$' "$page")
[ "$blocks" -eq 9 ] || fail "the page has $blocks blocks of commands instead of 9"

export PATH="$(dirname "$rose"):$PATH" TMPDIR=$work answers=$work/answers
cd "$work"
mkdir folder && cd folder
steps() { # runs all blocks in one shell, because of `kill %1`, and stops at the first failure
  echo 'set -e -o monitor'
  for n in $(seq "$blocks"); do
    echo "echo \"== block $n\" >&2"
    block sh "$n"
    [ "$n" -ne 2 ] || cat << 'ANSWER'
python3 - "$answers" << 'EDIT'
import sys
text = open("rose.toml").read()
open("drafted.toml", "w").write(text)
open("rose.toml", "w").write(text[:text.index("[workload]")] + open(sys.argv[1]).read())
EDIT
ANSWER
    [ "$n" -ne 4 ] || echo 'until grep -q "ready:" trace.err; do kill -0 %1; sleep 0.05; done'
  done
}
steps > ../steps
# Let the tracer write its messages to a file, so that the test can wait for them.
sed -i 's/-o end\.bin &$/-o end.bin 2> trace.err \&/' ../steps
grep -q 'trace.err &$' ../steps || fail "the page starts the recorder in another way"
# A test has less time than a user, so make fewer runs.
{ block toml 1; printf '\n[diagnose]\nconfirm_runs = 5\njobs = 3\n'; } > ../answers
finished() { # ends the processes that the steps have started but not ended
  for n in 1 2; do [ ! -e "redis$n.pid" ] || kill -9 "$(cat "redis$n.pid")" 2> /dev/null || true; done
  umount -l disk1 2> /dev/null || true
}
expect 0 bash ../steps
if [ "$failures" -gt 0 ]; then finished; cat trace.err 2> /dev/null | tail -5 >&2; exit 1; fi

says out 'rose.toml: 2 nodes \(redis1, redis2\)'
says out 'question  rose.toml:[0-9]+ workload.command: what do your clients do'
says out 'SCF +redis1 +[0-9]+ .*write ENOSPC .*/disk1/temp-[0-9]+\.rdb'
says out 'reproduced: the schedule reproduces the bug in'
grep -q 'error *= *"ENOSPC"' schedule.toml || fail "the schedule has another fault: $(cat schedule.toml)"
grep -q 'temp-' schedule.toml || fail "the schedule names no backup: $(cat schedule.toml)"
# In the draft, the replica follows the drafted primary, and not the running one. An open question is reported by name.
grep -q '"--replicaof", "${ip_redis1}", "7401"' drafted.toml ||
  fail "no replica: $(grep -A4 'name.*redis2' drafted.toml)"
expect 2 "$rose" profile -c drafted.toml
says err 'drafted.toml:[0-9]+:[0-9]+: workload.command: the question mark that .rose init. wrote is still there'
# An existing file is not overwritten.
expect 2 "$rose" init --pid $$ -o rose.toml
says err 'rose.toml exists and is not overwritten'
expect 2 "$rose" init --pid 4194305 -o x.toml
says err '--pid 4194305: there is no such process'
expect 2 "$rose" init -o x.toml
says err 'no source for the draft is named'
[ ! -e x.toml ] || fail "a file was written although nothing was drafted"

# A simple process with a log and a port, and with secrets in its command line and its environment.
cat > server.py << 'PY'
import os, resource, socket, sys
log = open("server.log", "a")
host, port = sys.argv[2].split(":")
listener = socket.create_server((host, int(port)))
print(f"address = {sys.argv[2]}", flush=True)
mask = os.umask(0); os.umask(mask)
print(f"umask {mask:o}, {resource.getrlimit(resource.RLIMIT_NOFILE)[0]} descriptors", flush=True)
log.write(f"up at {sys.argv[2]}\n"); log.flush()
while True: listener.accept()[0].close()
PY
(
  umask 0027
  ulimit -S -n 300
  KV_TOKEN=s3cret-of-the-environment KV_PEER=127.0.0.1:7409 exec python3 server.py --listen 127.0.0.1:7409 \
    --password s3cret-of-the-words --log-file=server.log --log-error=printed.log > printed.log 2>&1
) &
server=$!
until_true 20 grep -q up server.log
expect 0 "$rose" init --pid $server -o server.toml --json
cp ../out server.json
# The server as a systemd unit. A replacement for systemctl is used.
mkdir tools
printf '#!/bin/sh\nprintf "Id=kv.service\\nLoadState=loaded\\nControlGroup=/rose-none\\nMainPID=%s\\nRestart=on-failure\\nRestartUSec=250ms\\n"\n' $server > tools/systemctl
chmod +x tools/systemctl
PATH=$PWD/tools:$PATH expect 0 "$rose" init --unit kv -o unit.toml --json
json_is 'j["nodes"]' "['kv']"
grep -q '^restart *= .*250ms' unit.toml && grep -q 'server.py' unit.toml ||
  fail "the unit is not described: $(cat unit.toml)"
grep -q 'rose trace --node kv=unit:kv.service -o' unit.toml || fail "$(grep 'rose trace' unit.toml)"
cp server.json ../out
kill $server; wait $server 2> /dev/null || true
json_is 'j["nodes"]' "['server']"
json_is '[q["key"] for q in j["questions"]]' "['workload.command', 'oracle.command']"
if grep -n 's3cret' server.toml; then fail "a secret was copied"; fi
if grep -nE 'line [0-9]* of .*(server|printed).log' server.toml; then fail "a log was taken for settings"; fi
for wanted in 'env.KV_TOKEN = "rose-secret-' 'env.KV_PEER = "${ip}:7409"' '"--listen", "${ip}:7409"' \
  '"--password", "rose-secret-' 'tcp = 7409'; do
  tr -s '\n ' '  ' < server.toml | grep -qF -- "$wanted" || fail "no $wanted in $(cat server.toml)"
done
# Once a workload is filled in, the draft runs without further changes. Its log is in another place than that of the
# running server.
copy="[\"cp\", \"server/stdout.log\", \"$PWD/printed-in-run.log\"]"
sed "s|^command = \"?\"\$|command = $copy|" server.toml > filled.toml
before=$(cat server.log)
expect 0 "$rose" profile -c filled.toml --runs 1
[ "$(cat server.log)" = "$before" ] || fail "a run wrote to the log of the running server"
grep -q '^umask 27, 300 descriptors$' printed-in-run.log ||
  fail "other umask or limit in a run: $(cat printed-in-run.log)"

# For a Compose file, neither an engine nor running containers are needed.
printf 'services:\n  cache: { image: "redis:7", ports: ["6379:6379"], environment: { REDIS_PASSWORD: s3cret } }\n  web:\n    build: .\n' > compose.yaml
expect 0 "$rose" init --compose compose.yaml -o compose.toml
grep -q 'compose  *= "compose.yaml"' compose.toml && grep -q 'ready *=.*redis-cli -p 6379 ping' compose.toml ||
  fail "$(cat compose.toml)"
if grep -n 's3cret' compose.toml; then fail "a secret was copied"; fi
printf 'services: [\n' > bad.yaml
expect 2 "$rose" init --compose bad.yaml -o bad.toml
says err 'bad.yaml:[0-9]+:[0-9]+: not valid YAML'
nothing_left "by the page"
