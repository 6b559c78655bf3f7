#!/usr/bin/env bash
# Rose is killed (-9) at random moments, with every kind of fault. Its guardian undoes what the kernel does not undo.
# Nothing stays frozen, stopped, mounted, limited or filtered, and nodes that rose did not start survive. If the
# guardian was killed first, `rose heal` does the guardian's work. In both cases, nothing is left after `rose heal`.
# ROSE_KILLS: the number of rounds (12). ROSE_SEED: the seed for moments and kinds.
. "$(dirname "$0")/common.bash"
command -v gcc >/dev/null || skip "no gcc"
cd "$work"
export TMPDIR=$work
kills=${ROSE_KILLS:-12}
RANDOM=${ROSE_SEED:=$((($(date +%s) + $$) % 32768))}
echo "seed: ROSE_SEED=$ROSE_SEED, $kills kills"

cat > victim.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((noinline)) void beat(long n) {
  char line[96];
  int err = mkdir("made", 0755) ? errno : 0;
  rmdir("made");
  int fd = open("data/file", O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd >= 0) {
    if (n % 64 == 0 && write(fd, "x", 1) == 1) fdatasync(fd);
    close(fd);
  }
  int size = snprintf(line, sizeof line, "beat %ld %s\n", n, err == ENOSYS ? "ENOSYS" : "-");
  int out = open("beats.new", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (out < 0) return;
  if (write(out, line, (size_t)size) < 0) _exit(1);
  close(out);
  rename("beats.new", "beats");
}
int main(int argc, char **argv) {
  if (argc > 1 && chdir(argv[1])) return 1;
  mkdir("data", 0755);
  for (long n = 1;; n++) {
    beat(n);
    usleep(5000);
  }
}
C
gcc -g -O1 -w -o victim victim.c

# A node that rose did not start, in its own cgroup.
theirs=$(dirname "$cgroups")/theirs-$$
service=$(dirname "$cgroups")/service-$$
mkdir "$theirs" theirs
bash -c 'echo $$ > "$1/cgroup.procs"; exec "$2" "$3"' - "$theirs" "$work/victim" "$work/theirs" >/dev/null 2>&1 &
stranger=$!
ended() {
  local status=$?
  echo 1 > "$theirs/cgroup.kill"
  wait $stranger 2>/dev/null || true
  rmdir "$theirs" "$service" 2>/dev/null || true
  (exit $status)
  finish
}
trap ended EXIT
until_true 20 test -s theirs/beats

cat > workload.sh <<'SH'
#!/bin/sh
echo "$PWD" > "$HERE/began.new"
mv "$HERE/began.new" "$HERE/began"
while test -e "$HERE/hold-$ROSE_RUN"; do sleep 0.05; done
exec sleep "$(cat "$HERE/lasts")"
SH
chmod +x workload.sh
echo 100 > lasts
export HERE=$work
cat > rose.toml <<TOML
name = "killed"
[deployment]
network = "host"
[[node]]
name = "n1"
command = ["$work/victim"]
restart = { delay = "10ms", max = 1000 }
[[node]]
name = "n2"
command = ["$work/victim"]
[[node]]
name = "theirs"
attach = { cgroup = "$theirs" }
binary = "$work/victim"
[workload]
command = ["./workload.sh"]
timeout = "120s"
[oracle]
command = ["/bin/true"]
TOML

"$rose" doctor --json > doctor.json || true
can() { python3 -c "
import json, sys
sys.exit(0 if [c['ok'] for c in json.load(open('doctor.json'))['capabilities'] if c['name'] == '$1'] == [True] else 1)"; }
# Each entry contains NODE and the lines of a fault.
kinds=(
  'n1 kind = "syscall"\nsyscall = "mkdir"\nerror = "EIO"\ntimes = "forever"\n'
  'n1 kind = "syscall"\nsyscall = "mkdir"\ndelay = "3s"\ntimes = "forever"\n'
  'n1 kind = "pause"\nduration = "60s"\n'
  'n2 kind = "pause"\nduration = "60s"\nwhen = [{ syscall = "mkdir", count = 20 }]\n'
  'theirs kind = "pause"\nduration = "60s"\n'
  'theirs kind = "pause"\nduration = "60s"\nwhen = [{ function = "beat", count = 20 }]\n'
  'theirs kind = "descriptors"\nlimit = 8\n'
  'n1 kind = "descriptors"\nlimit = 8\n'
  'n1 kind = "partition"\npeers = ["n2"]\n'
  'n1 kind = "clock"\nshift = "1h"\n'
  'n2 kind = "disk-full"\npath = "data"\n'
  'theirs kind = "block"\nat = { function = "beat" }\nduration = "60s"\n'
  'n1 kind = "crash"\nwhen = [{ elapsed = "100ms" }]\n'
)
! can memory_controller || kinds+=('n2 kind = "memory"\nlimit = "64MiB"\n')
! can cpu_controller || kinds+=('n2 kind = "cpu"\nshare = 0.2\n')
if can own_disk; then
  kinds+=('n1 kind = "crash"\nlose = "unsynced"\nwhen = [{ elapsed = "100ms" }]\n')
  ! can slow_disk || kinds+=('n2 kind = "disk-slow"\npath = "data"\ndelay = "100ms"\n')
fi
# Writes a schedule with one fault, or with two on different nodes.
write_schedule() {
  local first=${kinds[RANDOM % ${#kinds[@]}]} second=${kinds[RANDOM % ${#kinds[@]}]} each id=0
  echo 'version = 1' > schedule.toml
  for each in "$first" "$second"; do
    [ $id = 0 ] || [ "${first%% *}" != "${second%% *}" ] || break
    id=$((id + 1))
    printf "[[fault]]\nid = \"f$id\"\nnode = \"${each%% *}\"\n${each#* }" >> schedule.toml
  done
}

limits() { prlimit --pid $stranger --nofile --output SOFT,HARD --noheadings; }
limit=$(limits)
beats() { awk '{ print $2 }' theirs/beats 2>/dev/null || true; }
# wrong: prints the effects of a dead rose that are still in force, one on each line.
wrong() {
  local state pid
  grep -F " $work/" /proc/self/mountinfo
  find "$theirs" "$cgroups" -name cgroup.freeze -exec grep -lx 1 {} + 2>/dev/null
  state=$(sed 's/.*) //; s/ .*//' /proc/$stranger/stat 2>/dev/null)
  case $state in R | S | D) ;; *) echo "the attached node is in state '$state'" ;; esac
  [ "$(limits)" = "$limit" ] || echo "the attached node's descriptors are limited"
  for pid in $(find "$cgroups" "$theirs" -name cgroup.procs -exec cat {} + 2>/dev/null); do
    if grep -q '^Seccomp:.*2' /proc/$pid/status 2>/dev/null; then echo "$pid is under a filter"; fi
  done
  grep -q ENOSYS theirs/beats && echo "the attached node's calls fail"
  return 0
}
right() { [ -z "$(wrong)" ]; }
# guardian PID: prints the process id of the guardian of the rose with this process id.
guardian() {
  local one
  for one in $(find "$cgroups" -name cgroup.procs -exec cat {} + 2>/dev/null); do
    case $(tr '\0' ' ' 2>/dev/null < /proc/$one/cmdline) in "rose-guardian guardian-of $1 "*) echo $one ;; esac
  done
}
begins() { test -e began || ! kill -0 $pid 2>/dev/null; }
# starts ROUND: replays schedule.toml, and returns when its workload has begun.
starts() {
  rm -f began
  "$rose" replay schedule.toml -c rose.toml --runs 1 --allow-attached >out 2>err &
  pid=$!
  until_true 120 begins
  test -e began || { fail "round $1: rose ended before its workload began: $(tail -3 err)"; cat schedule.toml >&2;
    return 1; }
}

longest=0
for round in $(seq "$kills"); do
  write_schedule
  starts "$round" || break
  python3 -c "import time; time.sleep($((RANDOM % 600)) / 1000)"
  watch=$(guardian $pid)
  [ -n "$watch" ] || { fail "round $round: there is no guardian"; break; }
  by=guardian
  if [ $((round % 3)) -eq 0 ]; then
    by=heal
    kill -KILL $watch
  fi
  kill -KILL $pid
  from=$(date +%s%N)
  wait $pid 2>/dev/null || true
  [ -n "$(leftovers)" ] || fail "round $round: nothing was left, so heal was not tested"
  [ $by = guardian ] || expect 0 "$rose" heal
  if ! until_true 30 right; then
    { echo "round $round, $by: $(wrong)"; cat schedule.toml err; } >&2
    break
  fi
  took=$((($(date +%s%N) - from) / 1000000))
  [ $took -le $longest ] || [ $by = heal ] || { longest=$took; slowest=$(grep kind schedule.toml | tr '\n' ' '); }
  seen=$(beats)
  goes_on() { [ "$(beats)" != "$seen" ]; }
  until_true 20 goes_on || { fail "round $round: the attached node does not go on"; cat schedule.toml >&2; break; }
  kill -0 $stranger 2>/dev/null || { fail "round $round: the attached node was ended"; break; }
  [ $by = heal ] || expect 0 "$rose" heal
  [ -z "$(leftovers)" ] || { fail "round $round, $by: left after heal: $(leftovers)"; break; }
done
echo "$round kills; the guardian took $longest ms at most (${slowest:-}) until this test noticed that all was undone"

# Rose is killed at any moment of a command, also before and after its runs, with its guardian or alone. Each file that
# the command writes must be complete or absent.
echo 0.2 > lasts
whole() {
  local dump
  [ ! -e profile.json ] || python3 -m json.tool profile.json > /dev/null || return 1
  [ ! -e j.xml ] || python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("j.xml")' || return 1
  for dump in dump.bin report/traces/*; do [ ! -e "$dump" ] || "$rose" dump show "$dump" > /dev/null || return 1; done
}
commands=(
  "replay schedule.toml -c rose.toml --runs 2 --allow-attached --report report --junit j.xml"
  "profile -c rose.toml -o profile.json"
  "trace -c rose.toml -o dump.bin"
)
for round in $(seq "$kills"); do
  write_schedule
  rm -rf report profile.json j.xml dump.bin
  # shellcheck disable=SC2086
  "$rose" ${commands[RANDOM % ${#commands[@]}]} > out 2> err &
  pid=$!
  python3 -c "import time; time.sleep($((RANDOM % 1200)) / 1000)"
  watch=
  [ $((RANDOM % 2)) = 0 ] || watch=$(guardian $pid)
  kill -KILL $watch $pid 2> /dev/null || true
  wait $pid 2> /dev/null || true
  expect 0 "$rose" heal
  nothing_left "at any moment, round $round, after $(tr '\n' ' ' < err)"
  right || { fail "at any moment, round $round: $(wrong)"; cat schedule.toml err >&2; break; }
  whole || { fail "at any moment, round $round: a file is incomplete"; break; }
done
rm -rf report profile.json j.xml dump.bin
echo 100 > lasts

# A service manager kills rose's cgroup (KillMode=control-group). The guardian survives this.
printf 'version = 1\n[[fault]]\nid = "one"\nkind = "pause"\nnode = "theirs"\nduration = "60s"\n' > schedule.toml
mkdir "$service"
rm -f began
bash -c 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"' - "$service" "$rose" replay schedule.toml -c rose.toml \
  --runs 1 --allow-attached >out 2>err &
pid=$!
frozen() { grep -qx 1 "$theirs/cgroup.freeze"; }
until_true 120 frozen
echo 1 > "$service/cgroup.kill"
wait $pid 2>/dev/null || true
until_true 30 right || wrong >&2
expect 0 "$rose" heal
[ -z "$(leftovers)" ] || fail "left after heal: $(leftovers)"

# After a normal end, the guardian ends with rose, and leaves nothing.
sed -i 's/60s/50ms/' schedule.toml
echo 0.3 > lasts
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 1 --allow-attached
[ -z "$(leftovers)" ] || fail "left after a normal end: $(leftovers)"
right || fail "after a normal end: $(wrong)"

# If the guardian was killed, another one replaces it before the next run.
rm -f began
touch hold-1 hold-2
"$rose" replay schedule.toml -c rose.toml --runs 2 --allow-attached >out 2>err &
pid=$!
until_true 120 begins
first=$(guardian $pid)
[ -n "$first" ] || fail "there is no guardian"
kill -KILL $first
rm began hold-1
until_true 120 begins
[ -n "$(guardian $pid)" ] || fail "the guardian was not replaced"
rm hold-2
wait $pid || fail "the replay failed after its guardian was replaced: $(cat err)"
says err "another one is started"
[ -z "$(leftovers)" ] || fail "left after a guardian was replaced: $(leftovers)"
expect 2 "$rose" guardian-of 1 rose-000000
says err "not a command"
