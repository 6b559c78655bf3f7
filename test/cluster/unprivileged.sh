#!/usr/bin/env bash
# Commands that need no privilege work without any: help, dumps, plans. The others print one message.
. "$(dirname "$0")/common.bash"
cd "$work"
command -v setpriv >/dev/null || skip "setpriv (util-linux) is missing"
cp "$rose" ./rose
chmod 755 rose
mkdir own
chown nobody: own
cd own
as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all --bounding-set=-all "$@"; }
r="as_nobody ../rose"

cat > ../rose.toml <<'TOML'
name = "plan"
[[node]]
name = "n1"
command = ["/bin/true"]
[[node]]
name = "n2"
command = ["/bin/true"]
[workload]
command = ["/bin/true"]
[oracle]
command = ["/bin/true"]
TOML
cat > ../events.jsonl <<'JSONL'
{"ts":1763755200123456789,"node":"n1","type":"scf","pid":41,"tid":44,"syscall":"openat","errno":"ENOSPC","fd":null,"path":"/var/lib/x/snapshot.0","peer":null}
{"ts":1763755201123456789,"node":"n2","type":"ps","pid":42,"state":"crashed","signal":"SIGKILL","exit_code":null,"duration_ms":null,"planned":false}
JSONL
chmod 644 ../rose.toml ../events.jsonl

expect 0 $r --help
expect 0 $r --version
for command in profile trace dump diagnose replay doctor heal node exec help "dump show" "dump merge" "dump import"; do
  expect 0 $r $command --help
  says out 'Examples'
  expect 0 $r $command --version
done
expect 0 $r dump import ../events.jsonl -o a.bin
[ "$(stat -c %a a.bin)" = 600 ] || fail "a dump's mode is $(stat -c %a a.bin), not 600"
expect 0 $r dump merge a.bin a.bin -o b.bin
expect 0 $r dump show b.bin --format jsonl
[ "$(grep -c '"ts"' "$work/out")" -eq 4 ] || fail "merge of two dumps of 2 events has $(grep -c '"ts"' "$work/out")"
expect 0 $r dump show b.bin --format text
expect 0 $r dump show b.bin --format perfetto
python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out" || fail "the Perfetto export is not JSON"
expect 0 $r diagnose --trace a.bin -c ../rose.toml --plan --json
json_is '[(c["rank"], c["kind"], c["node"]) for c in j["candidates"]]' "[(1, 'crash', 'n2'), (2, 'syscall', 'n1')]"
expect 0 $r doctor --json
json_is 'len(j["capabilities"]) > 5' True
# A damaged dump is printed up to the damage, and the exit status is 2.
head -c $(($(stat -c %s a.bin) - 3)) a.bin > cut.bin
expect 2 $r dump show cut.bin
says err 'cut.bin'
expect 2 $r dump show ../events.jsonl
# Commands that need root say so.
cat > s.toml <<'TOML'
version = 1
name = "s"
[[fault]]
id = "f"
kind = "crash"
node = "n1"
TOML
for command in "profile -c ../rose.toml" "replay s.toml -c ../rose.toml" "trace -c ../rose.toml" "heal" \
  "trace --pid 1"; do
  expect 3 $r $command
  says err '^rose: error: '
done
