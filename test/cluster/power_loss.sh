#!/usr/bin/env bash
# Tests crashes with power loss. Synced data stays, other data is lost or torn as requested, and the files with the
# node's output stay. A real database loses nothing if it syncs, and loses data if it does not. Nothing is left after a
# normal end, after Ctrl-C, and after kill -9 followed by `rose heal`.
. "$(dirname "$0")/common.bash"
. "$here/power.bash"
cd "$work"

# --- data is lost exactly sector by sector, for the node's whole folder and for a folder in it
cat > node.py <<'PY'
import os, time
first = not os.path.exists("synced")
def write(name, data, sync, offset=None):
    f = os.open(name, os.O_CREAT | os.O_WRONLY, 0o644)
    os.pwrite(f, data, os.fstat(f).st_size if offset is None else offset)
    if sync: os.fsync(f)
    os.close(f)
if first:
    write("inplace", b"o" * 4096, True)
    write("grown", b"o" * 4096, True)
    write("synced", b"s" * 5000, True)
    write("inplace", b"n" * 4096, False, 0)
    write("grown", b"n" * 8192, False)
    write("unsynced", b"u" * 4096, False)
    print("written", flush=True)
else:
    for name in ("inplace", "grown", "synced", "unsynced"):
        data = open(name, "rb").read() if os.path.exists(name) else b""
        print(name, len(data), "".join(sorted(set(map(chr, data)))), "".join(chr(data[i]) for i in range(0, len(data), 512)), flush=True)
    print("told", flush=True)
time.sleep(600)
PY
# run LOSE IN_FOLDER USER: makes one run. The node's report on its files is then in n1.out. The second fault waits for a
# line of the node's output, which must not be counted again when it is read from the restored disk.
run() {
  one_node power 10ms '["grep", "-q", "told", "n1/stdout.log"]' \
    "[\"/usr/bin/python3\", \"-c\", \"import os; os.chdir('$2' or '.'); exec(open('$work/node.py').read())\"]" |
    sed "s/^restart/$3\n&/" > rose.toml
  cat > schedule.toml <<TOML
version = 1
[[fault]]
id = "power"
kind = "crash"
node = "n1"
lose = "$1"
$(test -z "$2" || echo "path = \"$2\"")
when = [ { log = "written" } ]
[[fault]]
id = "again"
kind = "crash"
node = "n1"
after = ["power"]
when = [ { state = "started" }, { log = "written" } ]
TOML
  rm -rf report
  expect 0 "$rose" replay schedule.toml -c rose.toml --runs 1 --keep --report report
  says out "'again' did not fire: condition 2 of 2"
  cp report/runs/run-0001/n1/stdout.log n1.out
}
file() { grep -qE -- "^$1\$" n1.out || { fail "$lose: no '$1' in what the node found:"; cat n1.out >&2; }; }

lose=unsynced
run unsynced "" ""
says out 'SIGKILL to 1 process of n1; of its files, .*(1 gone|shorter)'
[ "$(head -1 n1.out)" = written ] || fail "the node's output was lost with its disk"
file 'synced 5000 s s+'
file 'inplace 4096 o o+'
file 'grown 4096 o o+'
file 'unsynced 0  ?'
cmp <(head -c 5000 /dev/zero | tr '\0' s) report/runs/run-0001/n1/synced ||
  fail "the node's files were not restored as plain files"
lose=torn
run torn data 'user = "nobody"'
says out '2 torn'
file 'synced 5000 s s+'
file 'inplace 4096 no n{4}o{4}'
file 'grown [0-9]+ no o{8}n{8}.*'
file 'unsynced 0  ?'
[ "$(stat -c %U report/runs/run-0001/n1/data/synced)" = nobody ] ||
  fail "the restored file does not belong to the node's user"
lose=scattered
run scattered data ""
file 'inplace 4096 no (on){4}'
nothing_left "after runs"

# --- impossible combinations are refused before anything runs
cat > refused.toml <<'TOML'
version = 1
[[fault]]
id = "power"
kind = "crash"
node = "n1"
lose = "unsynced"
[[fault]]
id = "full"
kind = "disk-full"
node = "n1"
path = "data"
TOML
expect 2 "$rose" replay refused.toml -c rose.toml --runs 1
says err "fault 'power': its folder is on the disk of fault 'full' too"

# --- SQLite commits by removing its journal. Only with synchronous=extra does it sync the folder afterwards. With
# "full", the default, a power loss directly after the acknowledgement undoes the last commit.
cat > db.py <<'PY'
import os, sqlite3, sys, time
db = sqlite3.connect("data/db", isolation_level=None)
db.execute("pragma synchronous=" + sys.argv[1])
db.execute("create table if not exists t (n integer primary key)")
said = open("stdout.log").read().count("acknowledged")
if said:
    ok = db.execute("pragma integrity_check").fetchone()[0]
    rows = db.execute("select count(*) from t").fetchone()[0]
    os.write(1, f"{'lost' if rows < said or ok != 'ok' else 'whole'} {rows} of {said} {ok}\ntold\n".encode())
    time.sleep(600)
for n in range(1, 10**6):
    db.execute("insert into t values (?)", (n,))
    os.write(1, f"acknowledged {n}\n".encode())
    time.sleep(0.001)
PY
power_goes '{ syscall = "unlink", path = "*/db-journal", result = "ok", count = 10 }, { syscall = "write", path = "*/stdout.log" }' > db-schedule.toml
# sqlite MODE OPTION...
sqlite() {
  local mode=$1
  shift
  one_node sqlite 10ms '["grep", "-qE", "^lost|malformed|DatabaseError", "n1/stdout.log", "n1/stderr.log"]' \
    "[\"/usr/bin/python3\", \"$work/db.py\", \"$mode\"]" > db.toml
  expect 0 "$rose" replay db-schedule.toml -c db.toml "$@"
}
sqlite full --runs 3
sqlite off --runs 2
sqlite extra --runs 3 --expect fixed

# --- Redis, as in the example
if command -v redis-server >/dev/null; then
  expect 0 "$rose" replay "$here/../../examples/power-loss/schedule.toml" \
    -c "$here/../../examples/power-loss/rose.toml" --runs 2
  expect 0 "$rose" replay "$here/../../examples/power-loss/schedule.toml" \
    -c "$here/../../examples/power-loss/rose.fixed.toml" --runs 2 --expect fixed
fi

# --- if rose is killed or interrupted during the run, the files are there, and the disk is removed
cat > workload.sh <<'SH'
#!/bin/sh
printf 'run=%s\n' "$PWD" > began.new
mv began.new began
sleep 600
SH
sed -i 's/written/never/' schedule.toml
begun() {
  rm -rf report
  "$rose" replay schedule.toml -c rose.toml --runs 1 --report report 2>err >out &
  pid=$!
  until_true 60 test -s report/runs/run-0001/began || { cat err >&2; exit 1; }
  until_true 60 test -s report/runs/run-0001/n1/data/unsynced
  . ./report/runs/run-0001/began
}
disks() { grep -F " $run/" /proc/self/mountinfo || true; }
begun
[ -n "$(disks)" ] || fail "there is no disk, so the test proves nothing"
kill -9 $pid
wait $pid 2>/dev/null || true
expect 0 "$rose" heal
[ -z "$(disks)" ] || fail "left after heal: $(disks)"
[ "$(stat -c %s "$run/n1/data/unsynced")" = 4096 ] || fail "the node's files were lost"
begun
kill -INT $pid
wait $pid 2>/dev/null || true
[ -z "$(disks)" ] || fail "left after Ctrl-C: $(disks)"
nothing_left "at the end"
