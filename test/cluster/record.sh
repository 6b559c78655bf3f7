#!/usr/bin/env bash
# Nodes that record themselves with librose-rr are replayed alone: examples/record unchanged, then a run with a kill, a
# restart and a partition, in which each incarnation must reach its recorded state again. In production, the tracer
# saves recordings together with its window.
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"
. "$(dirname "${BASH_SOURCE[0]}")/tracing.bash"
command -v ip > /dev/null || skip "ip (iproute2) is missing"
rose=$(realpath "$rose")
build=$(realpath "$build")
server=$build/examples/kv/kv-server
export TMPDIR=$work

cp -r "$here/../../examples/record" "$work/example"
cd "$work/example"
sed -i -e 's#${config_dir}/../../build/release#'"$build#" -e "s#\.\./\.\./build/release#$build#" rose.toml

# alone NODE RECORDING [COMMAND...]: replays the recording alone. COMMAND runs the server, for example gdb.
alone() {
  local node=$1 file=$2
  shift 2
  "$rose" replay --recording "$file" --node "$node" --json -- "$@" "$server" --id "${node#n}" \
    --cluster 10.77.4.1,10.77.4.2,10.77.4.3 --data /nowhere
}

# --- the bug is reproduced once, not by chance, but by a schedule in which one SWAP waits for another one
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 1 --report "$work/seen" --json
json_is 'j["verdict"]' reproduced
json_is 'len(j["run_results"][0]["recordings"])' 3
json 'chr(10).join(j["run_results"][0]["recordings"])' > "$work/recordings"
json 'chr(10).join(j["alone"])' > "$work/commands"
line=$(grep -h 'assertion failed' $(sed 's/recording.1.rr/stderr.log/' "$work/recordings") | head -1)
broken=$(sed 's/^[^ ]* \(n[123]\) .*/\1/' <<< "$line")
what=${line#*assertion failed: }
file=$(grep "/$broken/recording.1.rr" "$work/recordings")
[ "$(stat -c %a "$file")" = 600 ] || fail "$file is not 0600"

# --- every replay of the recording fails at the same assertion, with the same entry at the same position
for _ in $(seq 20); do
  expect 0 alone "$broken" "$file"
  json_is 'j["outcome"], j["command"]["signal"], j["taken"] == j["records"]' "('replayed', 6, True)"
  says err "assertion failed: $what"
done
for node in n1 n2 n3; do
  if [ "$node" != "$broken" ]; then expect 0 alone "$node" "$(grep "/$node/" "$work/recordings")"; fi
done
# The command that rose prints works.
expect 0 env PATH="$(dirname "$rose"):$PATH" sh -c "$(grep -- "--node $broken " "$work/commands")"
says out "^replayed to its end: "
# The folder of the run is accepted, too, because it contains one recording of the node.
expect 0 alone "$broken" "$(dirname "$(dirname "$file")")"
if command -v gdb > /dev/null; then
  expect 0 alone "$broken" "$file" gdb -q -batch -ex run -ex bt --args
  says err 'SIGABRT'
  says err 'kv::Raft::apply'
else
  echo "record: gdb is missing, so nothing was replayed under it"
fi

# --- a divergence is reported: the program that is replayed is not that of the recorded node
expect 1 "$rose" replay --recording "$file" --patience 1s --json -- "$build/test/programs/rr_victim" differs
json_is 'j["outcome"], j["divergence"]["record"], j["divergence"]["key"]' "('diverged', 1, 'raft')"
says err "rose-rr: diverged at record 1 of [0-9]+: expected checkpoint 'raft' of [0-9]+ bytes, got only calls of 'one'"
expect 1 "$rose" replay --recording "$file" --json -- true
json_is 'j["divergence"]["got"]' "no call of it: 'true' exited with status 0"
other=n1
[ "$broken" != n1 ] || other=n2
expect 2 "$rose" replay --recording "$file" --node $other -- true
says err "it belongs to node $broken, not to $other"
expect 2 "$rose" replay --recording rose.toml -- true
says err 'it is not a recording of librose-rr|it is too short for a recording'
expect 2 "$rose" replay --recording "$file" --runs 2 -- true
expect 2 "$rose" replay --node n1 schedule.toml

# --- a kill, a restart and a partition, with a small window: each incarnation reaches its recorded state
cat > busy.sh <<'END'
#!/bin/sh
set -u
kv() { "$1" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" "$2" "$3" "$4" "$5" "$6" "$7" load; }
kv "$1" --op add --keys 5 --seconds 6 & kv "$1" --prefix x- --interval-ms 2 --seconds 6 &
wait
"$1" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" --timeout 20 settle
for node in 1 2 3; do "$1" --nodes "$ROSE_IP_n1,$ROSE_IP_n2,$ROSE_IP_n3" scan $node > state-n$node.txt; done
exit 0
END
chmod +x busy.sh
sed -e 's#"./workload.sh"#"./busy.sh"#' -e 's#"--data", "${dir}/data"\]#"--data", "${dir}/data", "--snapshot-every", "100", "--compact-after", "300"]#' \
  -e 's#^record .*#&\nrestart = { delay = "500ms" }\nenv     = { ROSE_RR_WINDOW = "256KiB" }#' \
  -e 's#^command = \["grep".*#command = ["test", "-s", "state-n3.txt"]#' rose.toml > busy.toml
cat > busy-schedule.toml <<'END'
version = 1
name    = "a kill and a cut"
[[fault]]
id   = "kill"
kind = "crash"
node = "n1"
when = [ { elapsed = "1500ms" } ]
[[fault]]
id       = "cut"
kind     = "partition"
node     = "n2"
duration = "1s"
when     = [ { elapsed = "3500ms" } ]
END
expect 0 "$rose" replay busy-schedule.toml -c busy.toml --runs 1 --report "$work/report" --json
json_is 'j["verdict"]' reproduced
json 'chr(10).join(j["run_results"][0]["recordings"])' > "$work/recordings"
[ "$(wc -l < "$work/recordings")" = 4 ] ||
  fail "the number of recorded incarnations is not 4: $(cat "$work/recordings")"
run=$(dirname "$(dirname "$(head -1 "$work/recordings")")")
while read -r file; do
  node=$(basename "$(dirname "$file")")
  # Do not use --json, because the server itself writes to stdout, and prints its state at the end.
  expect 0 "$rose" replay --quiet --recording "$file" -- "$server" --id "${node#n}" \
    --cluster 10.77.4.1,10.77.4.2,10.77.4.3 --data /nowhere --snapshot-every 100 --compact-after 300
  says out '^replayed to its end: '
  if [ "$file" != "$run/n1/recording.1.rr" ]; then
    grep -v -e '^END$' -e '^replayed to' "$work/out" | cmp -s - "$run/state-$node.txt" ||
      fail "$file: the replay reaches another state than the run"
  fi
done < "$work/recordings"
[ -s "$run/state-n1.txt" ] || fail "no state to compare with"
nothing_left "the runs"
[ -z "$(find "$work" -maxdepth 1 -name 'rose-replay*')" ] || fail "a replay left its folder behind"

# --- production: a server that records itself is killed; it runs under its own user. The tracer, which has dropped its
# privileges, saves the recording that the killed server left and, when a dump is requested, the current one.
mkdir "$work/production"
chown nobody "$work/production"
command -v setpriv > /dev/null || skip "setpriv (util-linux) is missing"
ROSE_RR=record:kv.%n.rr ROSE_RR_WINDOW=256KiB unshare --net -- sh \
  -c 'ip link set lo up && cd "$2" && exec setpriv --reuid=nobody --regid=nogroup --clear-groups "$1" --id 1 --cluster 127.0.0.1 --data data' \
  sh "$server" "$work/production" 2> "$work/production.err" &
killed=$!
client=(nsenter --net --target "$killed" "$build/examples/kv/kv-client" --nodes 127.0.0.1)
until_true 60 "${client[@]}" --timeout 1 settle || cat "$work/production.err" >&2
"${client[@]}" --op add --seconds 60 --interval-ms 1 load > /dev/null 2>&1 &
load=$!
out=$work/production.bin
start_trace --node db=pid:$killed --dump-on-crash
expect 0 "$rose" dump --control "$work/control.sock" -o "$work/now.bin" --json
json_is 'j["recordings"]' "['$work/now.bin.recordings/db/kv.1.rr']"
copied=$work/now.bin.recordings/db/kv.1.rr
[ "$(stat -c %a "$copied")" = 600 ] || fail "$copied is not 0600"
replays() {
  expect 0 "$rose" replay --quiet --recording "$1" --node db -- "$server" --id 1 --cluster 127.0.0.1 \
    --data /nowhere && says out '^replayed to its end: '
}
replays "$work/now.bin.recordings"
kill -9 "$killed"
wait "$killed" 2> /dev/null || true
until_true 60 test -s "$work/production.bin.recordings/db/kv.1.rr" || cat "$work/trace.err" >&2
kill "$load" 2> /dev/null || true
wait "$load" 2> /dev/null || true
stop_trace
# The last dump contains the killed server's recording, too, because the recording of a process is kept after its end.
for dump in production.bin production.bin.1; do
  cmp "$work/$dump.recordings/db/kv.1.rr" "$work/production/kv.1.rr" ||
    fail "$dump.recordings does not hold what the server left"
  expect 0 "$rose" dump show "$work/$dump"
  says out "^recording $work/$dump.recordings/db/kv.1.rr: [0-9]+ records of a process"
done
replays "$work/production.bin.recordings"
expect 2 "$rose" trace --pid $$ --recordings other="$work/production" -o "$work/none.bin"
says err "no node 'other' is traced"

# --- processes that end at random moments; test/bench/record/lives.sh makes a hundred runs of each kind
expect 0 "$here/../bench/record/lives.sh" "$build" 3 $RANDOM
says out '3 of 3 \|$'
