#!/usr/bin/env bash
# A schedule with an order. The cases are examples/order unchanged, `rose step` in a schedule without an order, and a
# step that the order never allows.
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"
command -v redis-server >/dev/null || skip "redis-server is missing"

cp -r "$here/../../examples/order" "$work/example"
cd "$work/example"

# --- each run has the same injection point: the node is killed between the step and the following write
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 3 --json
json_is 'j["verdict"]' reproduced
json_is 'j["reproduced"]' 3
json_is 'sorted((o["name"], o["came"]) for o in j["order"])' "[('asked', 3), ('renamed', 3)]"

# --- what happens out of order is reported, and the run is inconclusive
sed 's/^order = .*/order = "killed * renamed | asked"/; s/^kind = "crash"/&\nwhen = [ { elapsed = "60s" } ]/' \
  schedule.toml > early.toml
expect 4 "$rose" replay early.toml -c rose.toml --runs 1
says out "not in the required order: 'renamed' came before 'killed', which never happened"

# --- if a step waits for something that never happens, the result names it
sed 's/^order = .*/order = "renamed * other * asked * killed"/' schedule.toml > never.toml
sed 's/^timeout = .*/timeout = "3s"/' rose.toml > short.toml
expect 4 "$rose" replay never.toml -c short.toml --runs 1
says out "step other: happened in 0 of 1 run \(it never happened: the workload did not call 'rose step other'\)"
says out "step asked: happened in 0 of 1 run \(it comes after 'other', which did not come\)"

# --- `rose step` outside a run is refused
expect 2 env -u ROSE_RUN_DIR "$rose" step asked
says err 'ROSE_RUN_DIR is not set'
nothing_left "the runs"
