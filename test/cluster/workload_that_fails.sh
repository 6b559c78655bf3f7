#!/usr/bin/env bash
# A workload that fails drove nothing: trace says so, instead of calling the bug absent.
. "$(dirname "$0")/common.bash"
export TMPDIR=$work
cd "$work"

# configuration WORKLOAD: in rose.toml.
configuration() {
  cat > rose.toml << TOML
name = "first"
[[node]]
name = "n1"
command = ["sleep", "1000"]
[workload]
command = ["sh", "-c", "$1"]
timeout = "30s"
[oracle]
command = ["false"]
TOML
}

configuration 'echo cannot connect; exit 1'
expect 4 "$rose" trace -c rose.toml -o dump.bin
says out 'inconclusive: the workload did not do its work: it exited with status 1'
says err 'cannot connect'
# Beside an incident it may have failed of that.
expect 4 "$rose" trace -c rose.toml --incident 'sleep 2' -o dump.bin
configuration 'sleep 1.5; exit 1'
expect 1 "$rose" trace -c rose.toml --incident : -o dump.bin
says out 'not-reproduced'
configuration 'exit 0'
expect 1 "$rose" trace -c rose.toml -o dump.bin --keep
says err "kept in $work/rose-runs"
