#!/usr/bin/env bash
# Nothing is left after fifty runs, after Ctrl-C, and after SIGTERM; and `rose heal` undoes what a killed rose has left.
# The test has its own part of the cgroups, of /run and of the network (see `alone`), so it does not see other processes
# of rose.
[ -n "${ROSE_CGROUP_PARENT:-}" ] || exec "$(dirname "$0")/alone" "$0" "$@"
. "$(dirname "$0")/common.bash"
cd "$work"

# ours: the processes in the cgroup of `alone`: this test, its commands, and everything that its rose processes started.
ours() { find "$(dirname "$cgroups")" -name cgroup.procs -exec cat {} + 2>/dev/null; }
# running: the processes of this test whose command line matches. Zombies have no command line.
running() {
  local pid
  for pid in $(ours); do
    if tr '\0' ' ' 2>/dev/null < "/proc/$pid/cmdline" | sed 's/ $//' | grep -qE -- "$1"; then echo "$pid"; fi
  done
}
# unheld: programs and maps with rose's name that no process holds open. A running rose holds its programs, except for a
# moment at its end.
unheld() {
  command -v bpftool >/dev/null || return 0
  python3 - <<'PY'
import glob, json, re, subprocess
def shown():
    return {(kind, one["id"]): one.get("name", "") for kind in ("prog", "map")
            for one in json.loads(subprocess.run(["bpftool", "-j", kind, "show"], capture_output=True).stdout or "[]")}
def held():
    for path in glob.glob("/proc/[0-9]*/fdinfo/*"):
        try:
            text = open(path).read()
        except OSError:
            continue
        yield from re.findall(r"^(prog|map)_id:\s*(\d+)", text, re.M)
there = shown()
by_somebody = {(kind, int(number)) for kind, number in held()}
still_there = shown()
for one, name in there.items():
    if name.startswith("rose") and one not in by_somebody and one in still_there: print("held by nobody:", *one, name)
PY
}

eval "by_part() $(declare -f leftovers | sed 1d)"
leftovers() { by_part; unheld; }

export TMPDIR=$work/tmp  # run directories are counted too
mkdir -m 711 "$TMPDIR"
cat > rose.toml <<'TOML'
name = "leftovers"
[[node]]
name = "a"
command = ["/bin/sh", "-c", "sleep 1000 & echo up; while :; do (: > state); sleep 0.05; done"]
ready = { log = "up" }
restart = { delay = "10ms", max = 100 }
[[node]]
name = "b"
command = ["/bin/sh", "-c", "echo up; exec sleep 1000"]
ready = { log = "up" }
[workload]
command = ["/bin/sh", "-c", "sleep ${WORKLOAD:-0.1}"]
timeout = "60s"
[oracle]
command = ["true"]
TOML
sed -i 's/\${WORKLOAD:-0.1}/$WORKLOAD/' rose.toml
cat > schedule.toml <<'TOML'
version = 1
name = "all-kinds"
[[fault]]
id = "fail"
kind = "syscall"
node = "a"
syscall = "openat"
path = "*/state"
error = "EIO"
[[fault]]
id = "cut"
kind = "partition"
node = "a"
duration = "20ms"
[[fault]]
id = "stop"
kind = "pause"
node = "b"
duration = "20ms"
[[fault]]
id = "kill"
kind = "crash"
node = "a"
after = ["cut"]
TOML
export WORKLOAD=0.2

count() {
  echo "processes: $(running '^sleep 1000$|while :; do \(: > state\)' | wc -l)"
  echo "namespaces: $(ls /run/netns | wc -l) $(for pid in $(ours); do readlink "/proc/$pid/ns/net"; done 2>/dev/null |
    sort -u | wc -l)"
  echo "cgroups: $(find "$cgroups" -type d | wc -l)"
  echo "links: $(ip -o link | wc -l)"
  echo "qdiscs: $(tc qdisc show | wc -l)"
  unheld
  echo "files: $(ls -d "$TMPDIR"/rose-* 2>/dev/null | wc -l)"
}

expect 0 "$rose" replay schedule.toml -c rose.toml --runs 1  # the first run fills caches
rm -rf "$TMPDIR"/rose-*
before=$(count)
"$rose" replay schedule.toml -c rose.toml --runs 50 --json >"$work/out" 2>"$work/err" &
pid=$!
descriptors=()
exec {never}<> <(:)
while kill -0 $pid 2>/dev/null; do
  held=(/proc/$pid/fd/*)  # not `ls`, because another process would take processor time from the runs
  descriptors+=(${#held[@]})
  read -rt 0.02 <&"$never" || true  # several times in each run, so that each half contains the maxima of its runs
done
wait $pid || fail "fifty runs: exit $?"
json_is 'j["runs"], j["reproduced"], [f["fired"] for f in j["faults"]]' "(50, 50, [50, 50, 50, 50])"
rm -rf "$TMPDIR"/rose-*
for _ in $(seq 100); do  # the kernel frees programs and namespaces after a grace period
  after=$(count)
  [ "$before" = "$after" ] && break
  sleep 0.1
done
[ "$before" = "$after" ] || fail "fifty runs left something behind:
before: $before
after:  $after"
# Descriptors: the maximum in the second half is close to that in the first. If each run leaked one, there would be 25
# more.
half=$((${#descriptors[@]} / 2))
early=$(printf '%s\n' "${descriptors[@]:0:half}" | sort -n | tail -1)
late=$(printf '%s\n' "${descriptors[@]:half}" | sort -n | tail -1)
[ "$late" -le $((early + 12)) ] || fail "descriptors grow: $early early, $late late"

busy() { [ -n "$(running '^sleep 50$')" ]; }
# interrupted SIGNAL: sends the signal to a replay during its workload.
interrupted() {
  WORKLOAD=50 setsid "$rose" replay schedule.toml -c rose.toml --runs 3 >"$work/out" 2>"$work/err" &
  pid=$!
  until_true 60 busy || return
  [ "$1" != KILL ] || kill_guardian $pid  # otherwise the guardian would undo a part before heal does
  kill -"$1" $pid
  status=0
  wait $pid || status=$?
}
interrupted INT
[ $status -eq 4 ] || fail "Ctrl-C: exit $status instead of 4"
nothing_left "after Ctrl-C"
interrupted TERM
[ $status -eq 4 ] || fail "SIGTERM: exit $status instead of 4"
nothing_left "after SIGTERM"
interrupted KILL
[ -n "$(leftovers)" ] || fail "kill -9 left nothing, so heal was not tested"
expect 0 "$rose" heal
nothing_left "after heal"
expect 0 "$rose" heal
says out 'nothing to heal'
survivors=$(running '^sleep (50|1000)$')
[ -z "$survivors" ] || fail "processes survived heal: $survivors"

# Namespaces, cgroups and processes of other programs are left alone, even if their names have exactly the form of
# rose's names.
strangers=()
is_sleeping() { grep -qE '^(rose-)?sleep$' "/proc/$1/comm" 2>/dev/null; }
# stranger COMMAND...: starts another program. The program is in its namespace once it has become `sleep`, and heal must
# not run before that.
stranger() {
  "$@" &
  strangers+=($!)
  until_true 60 is_sleeping $!
}
for named in rose-lab rose-abcdef-n1; do
  ip netns add "$named"
  stranger ip netns exec "$named" sleep 987
done
for named in rose-lab rose-abcdef; do
  mkdir "$cgroups/$named"
  stranger sleep 987
  echo "${strangers[-1]}" > "$cgroups/$named/cgroup.procs"
done
cp "$(command -v sleep)" rose-sleep
stranger ./rose-sleep 987
expect 0 "$rose" heal
says out 'nothing to heal'
says out 'network namespace rose-lab: .*left alone'
says out 'cgroup rose-abcdef: .*left alone'
expect 0 "$rose" heal --json
json_is 'j["undone"], sorted(j["unclaimed"])' "([], ['cgroup rose-abcdef', 'cgroup rose-lab', 'network namespace rose-abcdef-n1', 'network namespace rose-lab'])"
untouched() {
  for one in "${strangers[@]}"; do kill -0 "$one" 2>/dev/null || fail "heal ended $one, which is not rose's"; done
}
untouched
[ -e /run/netns/rose-lab ] && [ -e /run/netns/rose-abcdef-n1 ] || fail "heal removed a namespace that is not rose's"

# A namespace of another program is also left alone if its name begins with the id of a killed rose, because the journal
# of that rose lists what it created.
interrupted KILL
# The killed guardian has left a cgroup with its own id. The id of the run is the one for which there are namespaces.
id=
for cgroup in "$cgroups"/rose-*; do
  if [ -e "/run/netns/$(basename "$cgroup")-a" ]; then id=$(basename "$cgroup"); fi
done
[ -n "$id" ] || fail "the killed rose left no namespace"
ip netns add "$id-mine"
stranger ip netns exec "$id-mine" sleep 987
stranger nsenter --net=/run/netns/"$id-a" sleep 987
visitor=${strangers[-1]}
expect 0 "$rose" heal
says out "network namespace $id-a: removed; process $visitor \(sleep\), which does not belong to rose, is still in it"
says out "network namespace $id-mine: .*left alone"
untouched
[ -e "/run/netns/$id-a" ] && fail "heal left a namespace of the killed rose"

# Only the container engine can remove what it created. If the engine does not answer, heal asks it again next time. If
# it no longer exists, `heal --forget` removes the entry and reports what stays.
journal=/run/rose/rose-fedcba.lock
printf 'owner\t1\nengine\t%s\trm\t--force\trose-fedcba-n1\n' "$work/engine" > $journal
for _ in 1 2; do
  expect 3 "$rose" heal
  says err 'cannot remove container rose-fedcba-n1'
  says err 'hint: .*heal --forget'
  [ -e $journal ] || fail "a leftover that the engine could not remove is not recorded any more"
done
printf '#!/bin/sh\nshift $(($# - 1)); echo "$1"\n' > engine
chmod +x engine
expect 0 "$rose" heal
says out 'container rose-fedcba-n1: removed'
printf 'owner\t1\nengine\t%s\trm\t--force\trose-fedcba-n1\n' "$work/no-engine" > $journal
expect 0 "$rose" heal --forget
says out 'cannot remove container rose-fedcba-n1: .*forgotten'
[ -e $journal ] && fail "the forgotten entry is still recorded"
expect 0 "$rose" heal --json
json_is 'j["failed"], j["forgotten"]' '([], [])'

# Only regular files are journals.
mkfifo /run/rose/rose-222222.lock
ln -s /dev/zero /run/rose/rose-333333.lock
expect 0 timeout 60 "$rose" heal
rm /run/rose/rose-222222.lock /run/rose/rose-333333.lock

# On request, heal removes resources by name. If a name does not exist, this is reported.
expect 3 "$rose" heal rose-nothing
says err "no namespace, cgroup or lock .*rose-nothing"
expect 2 "$rose" heal lab
says err "rose-"
expect 0 "$rose" heal rose-lab rose-abcdef "$id"
says out 'network namespace rose-lab: ended 1 process, removed'
says out 'cgroup rose-abcdef: ended 1 process, removed'
says out "network namespace $id-mine: ended 1 process, removed"
nothing_left "after heal by name"
kill -0 "${strangers[4]}" || fail "heal ended a process because of its name"
kill "${strangers[4]}" "$visitor" 2>/dev/null || true
true
