#!/usr/bin/env bash
# Rose is killed (-9) while a node lacks memory, processor time, descriptors and disk space. The cgroups of rose and the
# full disk remain; `rose heal` removes them and keeps the files. If rose is interrupted instead, nothing is left.
. "$(dirname "$0")/common.bash"
cd "$work"
command -v python3 >/dev/null
cat > workload.sh <<'SH'
#!/bin/sh
printf 'cgroup=%s\nrun=%s\n' "$ROSE_CGROUP_a" "$PWD" > began.new
mv began.new began
sleep 600
SH
chmod +x workload.sh
cat > rose.toml <<'TOML'
name = "killed"
[deployment]
network = "host"
[[node]]
name = "a"
command = ["/bin/sh", "-c", "echo kept > data/file; [ ! -d slow ] || echo kept > slow/file; exec sleep 1000"]
[workload]
command = ["./workload.sh"]
[oracle]
command = ["/bin/true"]
TOML
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "full"
kind = "disk-full"
node = "a"
path = "data"
[[fault]]
id = "few"
kind = "descriptors"
node = "a"
limit = 16
TOML
can() { "$rose" doctor --json | python3 -c "
import json, sys
sys.exit(0 if [c['ok'] for c in json.load(sys.stdin)['capabilities'] if c['name'] == '$1'] == [True] else 1)"; }
for kind in memory cpu; do
  can ${kind}_controller || continue
  printf '[[fault]]\nid = "%s"\nkind = "%s"\nnode = "a"\n%s\n' $kind $kind \
    "$([ $kind = cpu ] && echo 'share = 0.5' || echo 'limit = "512MiB"')" >> schedule.toml
done

slow=
if can own_disk && can slow_disk; then
  slow=1
  printf '[[fault]]\nid = "slow"\nkind = "disk-slow"\nnode = "a"\npath = "slow"\ndelay = "5s"\n' >> schedule.toml
fi

full() { ! head -c 65536 /dev/zero 2>/dev/null > "$run/a/data/more.$((++tries))"; }
leftovers() { # prints the leftovers that have this run's id
  grep -hE " $run/a/(data|slow) " /proc/self/mountinfo
  for each in memory cpu; do ls -d /sys/fs/cgroup/$each/"$id"* 2>/dev/null; done
  true
}
gone() { ! kill -0 "$1" 2>/dev/null; }
begun() { # starts a run, and returns when every limit is in force
  rm -rf report
  "$rose" replay schedule.toml -c rose.toml --runs 1 --report report 2>err >out &
  pid=$!
  until_true 60 test -s report/runs/run-0001/began || { cat err >&2; exit 1; }
  . ./report/runs/run-0001/began
  id=$(basename "$(dirname "$cgroup")")
  tries=0
  until_true 60 full || fail "the disk did not get full"
  server=
  [ -z "$slow" ] || server=$(pgrep -P $pid -x rose-disk)
}

begun
kill_guardian $pid
kill -9 $pid
wait $pid 2>/dev/null || true
[ -n "$(leftovers)" ] || fail "nothing was left to heal, so the test proves nothing"
expect 0 "$rose" heal
[ -z "$(leftovers)" ] || fail "left after heal: $(leftovers)"
[ ! -e "$cgroup" ] || fail "$cgroup was left"
[ "$(cat "$run/a/data/file")" = kept ] || fail "the node's files were lost"
if [ -n "$slow" ]; then
  [ "$(cat "$run/a/slow/file")" = kept ] || fail "files on the slow disk were lost"
  until_true 20 gone "$server" || fail "the slow disk's server is left after heal"
fi

begun
kill -INT $pid
wait $pid 2>/dev/null || true
[ -z "$(leftovers)" ] || fail "left after Ctrl-C: $(leftovers)"
[ ! -e "$cgroup" ] || fail "$cgroup was left"
[ -z "$slow" ] || until_true 20 gone "$server" || fail "the slow disk's server is left after Ctrl-C"
