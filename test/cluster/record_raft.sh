#!/usr/bin/env bash
# Nodes in Go that use etcd's raft module and record themselves: examples/record/raft unchanged. Its bug is an order of
# messages. It occurs once in a run, and then in every replay of the recording that was saved with the dump.
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"
command -v ip > /dev/null || skip "ip (iproute2) is missing"
rose=$(realpath "$rose")
build=$(realpath "$build")
export TMPDIR=$work
example=$here/../../examples/record/raft
if why=$(unavailable examples/record/raft); then skip "$why"; fi
status=0
said=$("$example/install" "$build" 2> "$work/err") || status=$?
[ $status -ne 77 ] || skip "${said##*$'\n'}"
[ $status -eq 0 ] || { sed 's/^/  /' "$work/err" | tail -20 >&2; fail "install ended with $status"; exit 1; }
program=${XDG_CACHE_HOME:-$HOME/.cache}/rose/bugs/raft-counter/raft-counter
cd "$example"

expect 0 "$rose" trace -c rose.toml -o "$work/dump.bin" --json
json_is 'j["verdict"]' reproduced
json_is 'len(j["dumps"][-1]["recordings"])' 3
json 'chr(10).join(j["recordings"])' > "$work/recordings"
line=$(grep -h '^panic: ' $(sed 's/recording.1.rr/stderr.log/' "$work/recordings") | head -1)
broken=n$(sed 's/^panic: node \([123]\) .*/\1/' <<< "$line")

alone() {
  "$rose" replay --recording "$work/dump.bin.recordings" --node "$1" --json -- "$program" -id "${1#n}" \
    -nodes 10.77.5.1,10.77.5.2,10.77.5.3
}
for _ in $(seq 20); do
  expect 0 alone "$broken"
  json_is 'j["outcome"], j["command"]["status"], j["taken"] == j["records"]' "('replayed', 2, True)"
  says err "$line"
done
for node in n1 n2 n3; do
  [ "$node" = "$broken" ] || expect 0 alone "$node"
done
nothing_left "the run"
