#!/usr/bin/env bash
# Nodes that run as another user attack rose, which is root. They put links, pipes and hard links where rose reads or
# writes, and rename folders while rose mounts, fills, copies and unmounts. Files of root must not change, and nothing
# may stay mounted.
. "$(dirname "$0")/common.bash"
chmod 755 "$work"
cd "$work"
hostile=$build/test/programs/hostile
[ -x "$hostile" ] || hostile=${ROSE_PROGRAMS:?}/hostile
can() { "$rose" doctor --json | python3 -c "
import json, sys
sys.exit(0 if [c['ok'] for c in json.load(sys.stdin)['capabilities'] if c['name'] == '$1'] == [True] else 1)"; }
disks=
can own_disk && disks=1
export TMPDIR=$work/tmp
mkdir -m 711 tmp

# Files of root: a folder that only root may enter, a folder that everybody may enter, and a file that only root may
# read.
reset_roots() {
  rm -rf roots
  mkdir roots
  mkdir -m 700 roots/closed
  echo precious | tee roots/closed/a roots/closed/b roots/closed/c > /dev/null
  head -c 2048 /dev/zero | tr '\0' R > roots/shadow
  echo "TOPSECRET marker-9f3c" >> roots/shadow
  chmod 600 roots/shadow
  truncate -s 64M roots/image
  chmod 600 roots/image
}
roots() { find roots -printf '%P %u:%g %m %s %y\n' | sort; find roots -type f -exec sha256sum {} + | sort; }
unharmed() {
  [ "$(roots)" != "$before" ] || return 0
  fail "$1: files of root have changed:"
  diff <(echo "$before") <(roots) >&2 || true
  umount -l roots/closed 2>/dev/null || true
  reset_roots
}
mounted() { grep -E " $work/[^ ]* .* - (tmpfs rose-|ext4 /dev/loop)" /proc/self/mountinfo || true; }
unmounted() {
  [ -n "$(mounted)" ] || return 0
  fail "$1: still mounted: $(mounted)"
  umount -l $(mounted | cut -d" " -f5) 2>/dev/null || true
}

# config COMMAND [KEY...]: configures one node n1 of the user nobody. The workload takes $seconds.
seconds=0.3
config() {
  cat > rose.toml <<TOML
name = "hostile"
[deployment]
network = "host"
[[node]]
name = "n1"
command = ["/bin/sh", "$work/node.sh"]
user = "nobody"
ready = { log = "^up" }
${2:-}
[workload]
command = ["/bin/sleep", "$seconds"]
[oracle]
command = ["/bin/false"]
TOML
  printf '%s\n' "$1" > node.sh
  chmod 755 node.sh
}
schedule() { printf 'version = 1\n[[fault]]\nid = "f"\nnode = "n1"\n%s\n' "$1" > schedule.toml; }
replay() {
  local status=0
  timeout 120 "$rose" replay schedule.toml -c rose.toml --runs 1 --keep "$@" > out 2> err || status=$?
  [ $status -lt 70 ] || { fail "rose ended with $status"; tail -5 err >&2; }
}
n1=report/runs/run-0001/n1
# attack_below COMMAND: makes a run with setup.sh in which rose mounts a file system on the folder `data`. Meanwhile, a
# process of the node's user executes COMMAND in a mount namespace without that file system. Returns the status of
# COMMAND.
attack_below() {
  local until='until [ -e n1/attacked ]; do sleep 0.02; done'
  sed -i -e "s|^network = .*|&\nsetup = [\"$work/setup.sh\"]|" \
    -e "s|^command = .\"/bin/sleep.*|command = [\"/bin/sh\", \"-c\", \"$until\"]|" rose.toml
  schedule 'kind = "disk-full"
path = "data"'
  rm -rf report
  unshare --mount --propagation private setpriv --reuid nobody --clear-groups --inh-caps=-all sh -c "
    for i in \$(seq 2400); do
      [ ! -e $n1/begun ] || { $1 && touch $n1/attacked; exit; }
      sleep 0.05
    done" &
  local attacker=$!
  replay --report report
  wait $attacker
}

reset_roots
before=$(roots)

# --- a crash with torn writes: before the crash, the node syncs a link and then replaces it by a folder. All of this
# happens before rose acts, so the attack does not depend on timing.
if [ -n "$disks" ]; then
  config "[ -e been ] && { echo up; exec sleep 100; }
touch been; ln -s $work/roots d; sync -f .
rm d; mkdir d; head -c 2048 /dev/zero | tr '\\0' E > d/shadow
echo up
exec sleep 100"
  for lose in torn scattered; do
    schedule "kind = \"crash\"
lose = \"$lose\"
keep = 0.5"
    rm -rf report
    replay --report report
    says out 'SIGKILL to 1 process of n1'
    unharmed "lose = $lose through a link"
  done
fi

# --- a crash with torn writes: before the crash, the node renames root's files in its folder, and creates its own files
# with their names. All of this happens before rose acts, so the attack does not depend on timing.
if [ -n "$disks" ]; then
  cat > setup.sh <<SH
#!/bin/sh
head -c 4096 /dev/zero | tr '\\0' R > n1/data/secret
chmod 600 n1/data/secret
head -c 65536 /dev/zero | tr '\\0' R > n1/data/tool
chmod 4755 n1/data/tool
SH
  chmod +x setup.sh
  config "[ -e been ] && { echo up; exec sleep 100; }
touch been
sync -f data
mv data/secret data/was; head -c 4096 /dev/zero | tr '\\0' E > data/secret
mv data/tool data/wastool; head -c 65536 /dev/zero | tr '\\0' E > data/tool
# Holes cost no time, however large the files are.
for i in 1 2 3 4; do truncate -s 4G data/hole\$i; done
echo up
exec sleep 100"
  sed -i "s|^network = .*|&\nsetup = [\"$work/setup.sh\"]|" rose.toml
  for lose in torn scattered; do
    schedule "kind = \"crash\"
path = \"data\"
lose = \"$lose\"
keep = 0.9"
    rm -rf report
    replay --report report
    says out 'SIGKILL to 1 process of n1'
    for file in secret tool; do
      [ "$(stat -c %U $n1/data/$file)" = root ] || continue
      ! grep -q E $n1/data/$file || fail "$lose: the node's bytes are in root's $file"
    done
  done
  rm setup.sh
fi

# --- a process of the node's user unmounts a file system of rose, by removing the folder in a mount namespace that does
# not have the mount
cat > setup.sh <<SH
#!/bin/sh
echo roots > n1/data/secret
chmod 600 n1/data/secret
SH
chmod +x setup.sh
config "echo mine > data/own; touch begun; echo up; exec sleep 100"
attack_below "rmdir $n1/data" || fail "the folder below the file system could not be removed"
says err 'files of the file system that rose mounted at .*n1/data are in .*/\.rescued/0'
rescued=report/runs/run-0001/.rescued
[ "$(stat -c '%U %a' $rescued)" = "root 700" ] || fail "not accessible to root only: $(stat -c '%U %a' $rescued)"
[ "$(cat $rescued/0/own $rescued/0/secret | tr '\n' ' ')" = "mine roots " ] || fail "rescued: $(ls -l $rescued/0)"
[ "$(stat -c '%U %a' $rescued/0/secret)" = "root 600" ] || fail "root's file: $(stat -c '%U %a' $rescued/0/secret)"
unmounted "a file system that was unmounted"
unharmed "a file system that was unmounted"
rm setup.sh

# --- a process of the node's user gives the folder below a file system of rose a default access list, which grants its
# user all rights to files that are copied back
cat > setup.sh <<SH
#!/bin/sh
echo roots > n1/data/secret
chmod 640 n1/data/secret
SH
chmod +x setup.sh
cat > grant.py <<'PY'
import os, struct, sys
def entry(tag, user=0xffffffff):
    return struct.pack("<HHI", tag, 7, user)
everything = struct.pack("<I", 2) + entry(1) + entry(2, 65534) + entry(4) + entry(16) + entry(32)
os.setxattr(sys.argv[1], "system.posix_acl_default", everything)
PY
config "touch begun; echo up; exec sleep 100"
attack_below "python3 grant.py $n1/data" || fail "the access list could not be set"
[ "$(stat -c '%U %a' $n1/data/secret)" = "root 640" ] || fail "root's file: $(stat -c '%U %a' $n1/data/secret)"
python3 -c "import os; assert not os.listxattr('$n1/data/secret')" ||
  fail "root's file got the node's access list"
rm setup.sh

# --- a log with a hole that is far larger than the disk
config "truncate -s 10T stdout.log; echo up; exec sleep 100"
schedule 'kind = "pause"
duration = "10ms"'
rm -rf report
replay --report report
says out '0 inconclusive'

# --- the node writes a pid file that names a process of root
sleep 300 &
roots_process=$!
config "echo $roots_process > app.pid; echo up; exec sleep 100"
printf '[[node]]\nname = "n2"\nattach = { pid_file = "n1/app.pid" }\n' >> rose.toml
printf 'version = 1\n[[fault]]\nid = "f"\nnode = "n2"\nkind = "crash"\n' > schedule.toml
rm -rf report
replay --report report --allow-attached
says out 'belongs to user 0'
kill -0 $roots_process || fail "a process of root was ended"
kill $roots_process

# --- the folder of runs is reached through a link of the node's user
mkdir -m 755 linked linked/real
chown nobody linked
ln -s "$work/linked/real" linked/way
ln -s linked/way way
config 'echo up; exec sleep 100'
schedule 'kind = "pause"
duration = "10ms"'
TMPDIR=$work/way expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1
says err "may replace entries of .*linked"
# The owner of rose.toml is trusted, but the node must not run as that user either.
chown nobody rose.toml
TMPDIR=$work/way expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1
says err "its user nobody may replace entries of .*linked"
chown root rose.toml

# --- links where rose will create folders, mount file systems and put images
config 'echo up; exec sleep 100'
kinds='kind = "disk-full"'
[ -z "$disks" ] || kinds+=$'|kind = "crash"\nlose = "unsynced"|kind = "crash"\nlose = "torn"'
while IFS= read -r -d '|' kind; do
  schedule "$kind
path = \"data\""
  for target in "$work/roots/image" "$work/roots/closed"; do
    rm -rf report
    nice -n -5 "$hostile" place "$target" "$work/$n1/data" "$work/$n1/.data.copy" > placed &
    attacker=$!
    replay --report report
    kill $attacker 2>/dev/null || true
    wait $attacker 2>/dev/null || true
    unharmed "a link at the place of ${kind##*kind = }"
    unmounted "a link at the place of ${kind##*kind = }"
  done
  rm -rf report
  nice -n -5 "$hostile" flip "$work/roots/closed" "$work/$n1/data" "$work/$n1/stdout.log" &
  attacker=$!
  replay --report report
  kill $attacker 2>/dev/null || true
  wait $attacker 2>/dev/null || true
  unharmed "a place that is a link by turns"
  unmounted "a place that is a link by turns"
done <<< "$kinds|"

# --- a link in the place where rose has just unmounted something
config 'echo payload > data/evil; echo up; exec sleep 100'
for kind in 'kind = "disk-full"' ${disks:+$'kind = "crash"\nlose = "torn"'}; do
  schedule "$kind
path = \"data\""
  for round in 1 2; do
    rm -rf report
    nice -n -5 "$hostile" swap "$work/roots/closed" "$work/$n1/data" > swapped &
    attacker=$!
    replay --report report
    kill $attacker 2>/dev/null || true
    wait $attacker 2>/dev/null || true
    unharmed "a link in the place of an unmounted folder"
    unmounted "a link in the place of an unmounted folder"
  done
done

# --- a folder above a volume is renamed, and its replacement leads to another user's file system
mkdir big
mount -t tmpfs -o size=64M,mode=755 somebodys big
echo theirs > big/file
size() { df --output=size,used big | tail -1; }
theirs=$(size)
seconds=1.5
for way in benign evil; do
  config "echo x > a/b/file
echo up
sleep 0.2
mv a old
if [ $way = evil ]; then mkdir y; ln -s $work/big y/b; ln -s y a; else mkdir -p a/b; fi
exec sleep 100"
  schedule 'kind = "disk-full"
path = "a/b"
when = [ { elapsed = "700ms" } ]'
  rm -rf report
  replay --report report
  says out 'n1/a/b is full'
  [ "$(size)" = "$theirs" ] || fail "$way: another user's file system was changed: $(size)"
  [ "$(cat big/file)" = theirs ] && [ "$(ls big)" = file ] || fail "$way: another user's files were changed"
  unmounted "a renamed folder ($way)"
  [ "$(cat $n1/old/b/file)" = x ] || fail "$way: the node's file was not restored"
  [ "$(stat -c %U $n1/old/b/file)" = nobody ] || fail "$way: the node's file does not belong to the node's user"
  # If rose is killed (-9) during the run, heal must also restore the node's file, and change nothing of another user.
  rm -rf report
  "$rose" replay schedule.toml -c rose.toml --runs 1 --report report > out 2> err &
  pid=$!
  until_true 60 test -d "$n1/old/b" || tail -3 err >&2
  [ -n "$(mounted)" ] || fail "$way: nothing is mounted before the kill, so the test proves nothing"
  kill -9 $pid
  wait $pid 2>/dev/null || true
  expect 0 "$rose" heal  # because the guardian may have undone it already
  unmounted "heal after kill -9 ($way)"
  [ "$(cat $n1/old/b/file)" = x ] || fail "$way: heal did not restore the node's file"
  [ "$(size)" = "$theirs" ] || fail "$way: heal changed another user's file system"
done
# The folder is renamed repeatedly.
config 'mkdir -p c; echo x > a/b/file; echo up; exec sleep 100'
for round in 1 2; do
  rm -rf report
  nice -n -5 "$hostile" rename "$work/$n1/a" "$work/$n1/c/a" &
  attacker=$!
  replay --report report
  kill $attacker 2>/dev/null || true
  wait $attacker 2>/dev/null || true
  unmounted "a folder that is renamed again and again"
done
umount big
seconds=0.3

# --- logs that do not belong to the node: links that lead out of the folder, hard links, pipes
for kind in "ln -s $work/roots/shadow server.log" "mkdir l; ln -s $work/roots l/x; ln -s l/x/shadow server.log" \
    "mkfifo server.log" "rm stdout.log stderr.log; ln -s $work/roots/shadow stdout.log; mkfifo stderr.log"; do
  config "echo up; sleep 0.1; $kind; exec sleep 100" 'logs = ["server.log", "l/x/shadow"]'
  sed -i 's/^ready = .*//' rose.toml
  schedule 'kind = "pause"
duration = "10ms"
when = [ { log = "TOPSECRET" } ]'
  rm -rf report
  seconds=1 replay --report report
  says out "'f' did not fire"
  ! grep -rqs --exclude-dir=n1 marker-9f3c report out err || fail "root's file was read: $kind"
  unharmed "$kind"
done
# A hard link. With fs.protected_hardlinks, only root can link a file of root, so the workload makes the link.
config 'echo up; exec sleep 100' 'logs = ["server.log"]'
cat > workload.sh <<SH
#!/bin/sh
ln $work/roots/shadow n1/server.log
sleep 1
SH
chmod +x workload.sh
sed -i "s|^command = .\"/bin/sleep.*|command = [\"$work/workload.sh\"]|" rose.toml
rm -rf report
replay --report report
says out "'f' did not fire"
! grep -rqs --exclude-dir=n1 marker-9f3c report out err || fail "root's file was read through a hard link"
rm -f report/runs/run-0001/n1/server.log
unharmed "a hard link"

# --- a node exchanges its descriptor while rose duplicates it: the socket becomes a file of the node's own FUSE file
# system, and closing that file never returns
hostile_files=${hostile}_files
mknod -m 666 fuse c 10 229 2> /dev/null && (exec 3<> fuse) 2> /dev/null || hostile_files=
if [ -n "$hostile_files" ] && setpriv --reuid nobody --clear-groups unshare -Urm true 2> /dev/null; then
  config "exec $hostile_files $work/fuse"
  # If rose waited until the file is closed, only the end of the FUSE server would end the wait.
  cat > workload.sh <<'SH'
#!/bin/sh
for i in $(seq 600); do
  ! grep -qE '^(done|no file system)' n1/stdout.log || exit 0
  sleep 0.1
done
kill -KILL $(sed -n 's/^server //p' n1/stdout.log)
SH
  sed -i "s|^command = .\"/bin/sleep.*|command = [\"$work/workload.sh\"]|" rose.toml
  schedule 'kind = "syscall"
syscall = "connect"
peer = "10.9.9.9:*"
error = "EIO"'
  rm -rf report
  replay --report report
  says out "'f' did not fire"
  if ! grep -q '^no file system' $n1/stdout.log; then
    grep -q '^held' $n1/stdout.log || fail "no descriptor was exchanged in time, so the test proves nothing"
    grep -q '^done' $n1/stdout.log || fail "rose waited for a file system of the node"
  fi
fi
rm -f fuse

# --- kept files are replaced before they are removed, and the report folder belongs to another user
config 'ln -s '"$work"'/roots/closed link; mkdir -p a/b; ln -s '"$work"'/roots a/b/roots; echo up; exec sleep 100'
schedule 'kind = "pause"
duration = "10ms"'
replay --report report
replay --report report
unharmed "an earlier run that is removed"
rm -rf report
mkdir -p report/runs
chown nobody report/runs
expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1 --report report
says err 'others may write to .*report/runs'
rm -rf report
mkdir -m 755 theirs
chown nobody theirs
expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1 --report theirs/report
says err 'may replace entries of .*theirs'
expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1 --report theirs
says err 'may replace entries of .*theirs'
[ -z "$(ls -A theirs)" ] || fail "something was created in a folder of another user: $(ls -A theirs)"

# --- a user other than the node's has prepared the report folder, or a folder on the path to it
mkdir -m 1777 public
as_daemon() { setpriv --reuid daemon --clear-groups sh -c "$1"; }
as_daemon "mkdir public/report; ln -s $work/roots/closed public/report/traces"
for place in public/report public/report/new; do
  expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1 --report $place
  says err 'others may replace entries of .*public, '
done
as_daemon "ln -s $work/linked/real public/way"
expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1 --report public/way
says err 'others may replace entries of .*public, '
TMPDIR=$work/public/report expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1
says err 'others may replace entries of .*public, '
mkdir -p mixed
ln -s "$work/roots/closed" mixed/traces
expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1 --report mixed
says err 'others may write to .*mixed/traces'
unharmed "a report folder of another user"
# A report is written if all folders on the path belong to root, even with a sticky bit. The owner of rose.toml is
# trusted.
expect 1 "$rose" replay schedule.toml -c rose.toml --runs 1 --report public/own
as_daemon "mkdir public/theirs"
chown daemon rose.toml
expect 1 "$rose" replay schedule.toml -c rose.toml --runs 1 --report public/theirs/report
rm -rf public rose.toml

# --- without a report folder, the folder of a run has an unpredictable name
config 'echo "$ROSE_RUN_DIR" >> '"$work"'/places; echo up; exec sleep 100'
: > places
chmod 666 places
expect 1 "$rose" replay schedule.toml -c rose.toml --runs 3
[ "$(sort -u places | wc -l)" = 3 ] || fail "runs were not in three places: $(cat places)"
! grep -vqE "^$work/tmp/rose-runs/[0-9]{10}/run-[0-9]{10}$" places || fail "runs are elsewhere: $(cat places)"
[ "$(stat -c '%u %a' tmp/rose-runs)" = "0 711" ] || fail "others may list the folders of runs"
mkdir -m 777 open
TMPDIR=$work/open expect 3 "$rose" replay schedule.toml -c rose.toml --runs 1
says err 'others may rename what is in'
nothing_left "after all"
