#!/usr/bin/env bash
# Collects the windows of many hosts at once: over ssh, from pods, from a folder. Hosts that do not answer are reported.
# Further cases are 300 hosts, and tracers that share a folder, where a trigger of one tracer makes all of them write.
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"

cd "$work"
tracers=() victims=()
ended() {
  for pid in "${tracers[@]}"; do kill -INT "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  for pid in "${victims[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  finish
}
trap ended EXIT

. "$here/service.bash"

# tracer NAME OPTION...: a service and its tracer, whose control socket is $work/NAME.
tracer() {
  local name=$1
  shift
  start_service "orders.$name"
  victims+=($service)
  "$rose" trace --node "$name=pid:$service" --control "$work/$name" "$@" >"$name.out" 2>"$name.err" &
  tracers+=($!)
  until_true 60 grep -q 'ready:' "$name.err"
}

# --- the command that runs on each host, with replacements for ssh and kubectl; here HOST is the name of a tracer
cat >ssh <<'EOF'
#!/bin/bash
echo "$0 $*" >>calls
for host in "$@"; do host=${host#me@}; case $host in db*|cache|silent|gone|junk|torn|endless|babble) break ;; esac; done
case $host in
silent) exec sleep 600 ;;
gone) echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255 ;;
junk) echo "Welcome to junk"; exit 0 ;;
torn) head -c 300 one.bin; exit 0 ;;
endless) cat one.bin; exec cat /dev/urandom ;;
babble) exec cat /dev/urandom ;;
esac
command=${!#}
exec bash -c "${command/--control SOCK/--control $host}"
EOF
cat >kubectl <<'EOF'
#!/bin/bash
echo "$0 $*" >>calls
[ "$1 $2 $3 $4 $5 $6 $7" = "exec -n prod cache -c server --" ] || { echo "error: unexpected $*" >&2; exit 1; }
shift 7
exec "${@/SOCK/cache}"
EOF
printf '#!/bin/bash\nexec cat one.bin\n' >kubectl-any
chmod +x ssh kubectl kubectl-any
by="--ssh $work/ssh --kubectl $work/kubectl --rose $rose --control SOCK"

tracer db1
tracer db2
tracer cache
for name in db1 db2 cache; do echo "miss of-$name" >"orders.$name"; done
for name in db1 db2 cache; do
  until_true 60 eval "\"$rose\" dump --control $name -o seen.bin --quiet && \"$rose\" dump show seen.bin --format jsonl | grep -q /rose-none/of-$name"
done

# --- stdout
expect 0 eval "'$rose' dump --control db1 -o - >one.bin"
expect 0 "$rose" dump show one.bin --format jsonl
says out /rose-none/of-db1
expect 2 "$rose" dump --control db1 -o - --json
says err "both write to stdout"

# --- all hosts answer: one dump is written
expect 0 "$rose" dump collect db1 me@db2 kubectl:prod/cache:server -o all.bin $by --json
json_is 'j["answered"]' 3
json_is '[h["problem"] for h in j["hosts"]]' "[None, None, None]"
expect 0 "$rose" dump show all.bin --format jsonl
for name in db1 db2 cache; do says out "/rose-none/of-$name"; done
[ "$(stat -c %a all.bin)" = 600 ] || fail "the dump is readable by others"
grep -q -- "-T -o BatchMode=yes" calls || fail "ssh could ask for a password"

# --- some hosts do not answer: the dumps that arrived are written, and each missing host is reported
expect 4 "$rose" dump collect db1 silent gone junk torn db2 -o some/ --deadline 3s $by
says out '^db1: [0-9]+ events'
says out '2 of 6 answered'
says err 'silent: no answer within 3s'
says err 'gone: ssh: connect to host gone port 22: No route to host'
says err 'junk: .*(not a rose dump|no rose dump|dump)'
says err 'torn: '
[ -e some/db1.bin ] && [ -e some/db2.bin ] && [ ! -e some/gone.bin ] ||
  fail "the folder does not contain exactly the collected dumps"
# A host that sends something other than a dump, or sends more after its dump, is stopped at once, so it does not fill
# the disk. The deadline is longer than the test may take.
expect 4 timeout 120 "$rose" dump collect db1 endless babble -o endless/ --deadline 10m $by
says out '1 of 3 answered'
says err 'endless: .*more bytes follow the end of the dump'
says err 'babble: .*not a rose dump'
expect 0 "$rose" dump show endless/endless.bin --format jsonl
says out /rose-none/of-db1
expect 0 "$rose" dump collect db1 kubectl:prod/cache:server ssh:db1 kubectl:prod-cache:server db1 \
  -o alike/ ${by/"$work/kubectl"/"$work/kubectl-any"}
for file in alike/*; do expect 0 "$rose" dump show "$file" --format jsonl; done
[ "$(ls alike | wc -l)" = 5 ] || fail "hosts with similar names share a file: $(ls alike)"
expect 3 "$rose" dump collect gone -o none.bin $by
says err 'no host responded'
[ ! -e none.bin ] || fail "a dump was written although no host answered"

# --- a list of hosts, and lists that are refused
printf '# ours\ndb1\n\n db2  # second\n' >hosts
expect 0 "$rose" dump collect --all --hosts hosts -o listed.bin $by
says out '2 of 2 answered'
expect 0 "$rose" dump collect db1 --after 10ms -o later.bin $by
says out '1 of 1 answered'
grep -q -- '--after.*10ms' calls || fail "the tracers did not get --after: $(tail -2 calls)"
expect 2 "$rose" dump merge one.bin listed.bin -o listed.bin
says err 'listed.bin is one of the dumps to be merged'
expect 0 "$rose" dump merge one.bin one.bin -o twice.bin
says err 'one.bin is named twice'
expect 2 "$rose" dump collect --all db1
expect 2 "$rose" dump collect
says err 'no host is named'
for bad in '-oProxyCommand=x' 'a b' 'a;b' 'kubectl:' 'kubectl:x/-n' '$(x)'; do
  expect 2 "$rose" dump collect -- "$bad"
  says err 'is not a source of dumps'
done
printf 'db1\nbad;host\n' >hosts
expect 2 "$rose" dump collect --all --hosts hosts
says err 'hosts:2: '

# --- 300 hosts
cat >many <<'EOF'
#!/bin/bash
exec cat one.bin
EOF
chmod +x many
expect 0 "$rose" dump collect $(seq -f 'h%g' 300) -o many.bin --ssh "$work/many" --json
json_is 'j["answered"]' 300

# --- tracers that share a folder: a trigger of one makes all write; a dump that was written for this reason does not
# trigger another one
mkdir shared
touch shared/rose-other-20200101T000000Z-crash.bin  # written long ago
tracer west -o "$work/shared/" --dump-on-crash --dump-together
tracer east -o "$work/shared/" --dump-together
echo crash >orders.west
until_true 60 grep -q 'crash: west: .*: wrote ' west.err
until_true 60 grep -q 'together: rose-.*-crash.bin: wrote ' east.err
echo "miss after" >orders.west
until_true 60 eval "\"$rose\" dump --control west -o seen.bin --quiet && \"$rose\" dump show seen.bin --format jsonl | grep -q /rose-none/after"
[ "$(grep -c ': wrote ' west.err)" = 1 ] || { fail "west wrote again"; cat west.err; }
[ "$(ls shared/*-together.bin | wc -l)" = 1 ] || fail "the tracers did not write one set of dumps: $(ls shared)"
rm shared/rose-other-*
# Anybody who may write to the shared folder can create pipes and folders that have the names of dumps. The dumps of the
# other hosts are still collected.
mkfifo shared/rose-pipe-20990101T000000Z-crash.bin
truncate -s 100G shared/rose-sparse-20990101T000000Z-crash.bin
mkdir shared/rose-folder-20990101T000000Z-crash.bin
expect 4 timeout -s KILL 60 "$rose" dump collect ./shared/ -o folder.bin
says err 'sparse.*not a rose dump'
rm -r shared/rose-pipe-* shared/rose-folder-* shared/rose-sparse-*
expect 2 "$rose" trace --pid $$ -o file.bin --dump-together
says err "names the file 'file.bin'"
mkdir empty
expect 3 "$rose" dump collect ./empty/ -o none.bin
says err 'no tracer has written a dump there'
