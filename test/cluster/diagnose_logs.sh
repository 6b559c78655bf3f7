#!/usr/bin/env bash
# Tests a diagnosis from logs alone. The planted failure scf-on-socket happens as in production, its dump is deleted,
# and the diagnosis gets only what the failing server wrote to its standard error.
. "$(dirname "$0")/common.bash"
for need in ip gcc prlimit python3; do command -v $need > /dev/null || skip "$need is missing"; done
rose=$(realpath "$rose")
export ROSE=$rose TMPDIR=$work
cp -r "$here/../planted" "$work/planted"
cd "$work/planted/scf-on-socket"
rm -rf build
./install > "$work/out" 2>&1 || skip "the case cannot be built here: $(tail -1 "$work/out")"

expect 0 "$rose" trace -c rose.toml --incident ./incident -o "$work/dump.bin" --keep --json
json_is 'j["verdict"]' reproduced
rm "$work/dump.bin"
cp "$work"/rose-runs/*/run-*/greeter/stderr.log "$work/server.log"
gzip -c "$work/server.log" > "$work/server.log.1.gz"

# The plan needs neither runs nor root.
expect 0 "$rose" diagnose --plan --log "$work/server.log.1.gz" -c rose.toml --json
json_is 'j["candidates"][0]["kind"], j["candidates"][0]["syscall"], j["candidates"][0]["error"]' \
  "('syscall', 'accept4', 'EMFILE')"
json_is '"server.log.1.gz:1 of greeter" in j["candidates"][0]["why"]' True
says err 'server.log.1.gz: .* lines, .* messages.* \(gzip\)'

# The replay rate is not measured here. planted.sh measures it, and finds the same failure from its dump.
expect 0 "$rose" diagnose --log greeter="$work/server.log" -c rose.toml -o "$work/schedule.toml" --jobs 4 \
  --report "$work/report" --stop-after found --json
json_is 'j["verdict"], j["schedules"] <= 5' "('reproduced', True)"
json '"from logs alone: %d schedules, %d runs" % (j["schedules"], j["runs"])'
replays 4 "$work/schedule.toml" rose.toml --jobs 4
nothing_left "by a diagnosis from logs"

# The record contains every run. A diagnosis that resumes from it makes no run, and gives the same result.
cp "$work/report/record.jsonl" "$work/record"
cp "$work/schedule.toml" "$work/first.toml"
expect 0 "$rose" diagnose --log greeter="$work/server.log" -c rose.toml -o "$work/schedule.toml" --jobs 4 \
  --report "$work/report" --stop-after found --resume --json
cmp "$work/report/record.jsonl" "$work/record" || fail "--resume made further runs"
cmp "$work/schedule.toml" "$work/first.toml" || fail "--resume found a different schedule"

# Input that cannot be used is refused before anything runs.
expect 2 "$rose" diagnose -c rose.toml
says err 'neither --trace nor --log'
expect 2 "$rose" diagnose --log nobody="$work/server.log" -c rose.toml
says err "no node 'nobody'.*"
says err 'its nodes are greeter'
expect 2 "$rose" diagnose --log "$work/missing.log" -c rose.toml
says err 'cannot open the log .*missing.log'
head -c 100000 /dev/urandom > "$work/noise.log"
expect 2 "$rose" diagnose --log "$work/noise.log" -c rose.toml
says err 'the logs contain no message: .*binary'
