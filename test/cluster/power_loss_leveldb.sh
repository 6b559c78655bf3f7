#!/usr/bin/env bash
# LevelDB may lose data that was written without sync, which is the default, but never data that was written with sync.
# This is tested with a hand-written schedule, and with one that was found from an outage.
. "$(dirname "$0")/common.bash"
tenths=60
. "$here/power.bash"
/usr/bin/python3 -c 'import plyvel' 2>/dev/null || skip "needs python3-plyvel"
cd "$work"

cat > level.py <<'PY'
import os, plyvel, sys, time
os.makedirs("data", exist_ok=True)
said = open("stdout.log").read().count("acknowledged")
try:
    db = plyvel.DB("data/db", create_if_missing=True)
except plyvel.Error as problem:
    os.write(1, f"refused: {problem}\ntold\n".encode())
    time.sleep(600)
if said:
    rows = sum(1 for _ in db)
    os.write(1, f"{'lost' if rows < said else 'whole'} {rows} of {said}\ntold\n".encode())
    time.sleep(600)
for n in range(1, 10**6):
    db.put(b"%08d" % n, b"x" * 100, sync=sys.argv[1] == "sync")
    os.write(1, f"acknowledged {n}\n".encode())
    time.sleep(0.001)
PY
power_goes '{ log = "acknowledged 100$" }' > schedule.toml
# configuration MODE DELAY: configures a node that syncs each write if MODE is "sync", and that is restarted after
# DELAY. The workload begins when the node writes. Therefore a power loss some time later loses something, however long
# the interpreter takes to start.
configuration() {
  one_node leveldb "$2" '["grep", "-q", "^lost", "n1/stdout.log"]' \
    "[\"/usr/bin/python3\", \"$work/level.py\", \"$1\"]" '{ log = "^acknowledged" }'
}

configuration default 10ms > rose.toml
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 2
configuration sync 10ms > rose.toml
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 2 --expect fixed

# The schedule is found from an outage. Production has its own disk, which loses power by ordinary means: ext4 is shut
# down, and the process is killed.
cat > disk.sh <<'SH'
#!/bin/sh
set -e
mkdir -p n1/data
truncate -s 64M disk.img
$(command -v /usr/sbin/mke2fs || echo mke2fs) -q -F -t ext4 disk.img
mount -o loop,commit=600 disk.img n1/data
SH
cat > undo.sh <<'SH'
#!/bin/sh
while umount n1/data 2>/dev/null; do :; done
SH
chmod +x disk.sh undo.sh
cat > incident.py <<'PY'
import fcntl, os, signal, struct, subprocess, time
folder = os.path.join(os.environ["ROSE_RUN_DIR"], "n1/data")
while open(os.path.join(os.environ["ROSE_RUN_DIR"], "n1/stdout.log")).read().count("acknowledged") < 100: time.sleep(0.01)
disk = os.open(folder, os.O_RDONLY)
pid = int(open(os.environ["ROSE_PIDFILE_n1"]).read())
os.kill(pid, signal.SIGSTOP)  # stop it first, so that it does not see errors of its disk
while open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "T": time.sleep(0.001)
fcntl.ioctl(disk, 0x8004587d, struct.pack("I", 2))  # EXT4_IOC_SHUTDOWN, without flushing
os.kill(pid, signal.SIGKILL)
os.close(disk)
subprocess.check_call(["umount", "-l", folder])
subprocess.check_call(["mount", "-o", "loop", os.path.join(os.environ["ROSE_RUN_DIR"], "disk.img"), folder])
PY
configuration default 1s > test.toml
printf '[diagnose]\njobs = 2\nmax_runs = 100\n' >> test.toml
{ cat test.toml; printf '[deployment]\nsetup = ["./disk.sh"]\nteardown = ["./undo.sh"]\n'; } > production.toml
expect 0 "$rose" trace -c production.toml --incident "/usr/bin/python3 $work/incident.py" -o dump.bin
expect 0 "$rose" profile -c test.toml -o profile.json --runs 1
expect 0 "$rose" diagnose --trace dump.bin -c test.toml --profile profile.json -o found.toml --stop-after found
grep -qE '^lose += "unsynced"' found.toml || { fail "the power loss was not found:"; cat found.toml >&2; }
nothing_left "diagnose"
