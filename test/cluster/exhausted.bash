# Sourced after common.bash by the tests of a node that runs out of a resource. The node is a store that then loses
# acknowledged data, and diagnose finds the limit as the cause.

# one_store: prints the common part of rose.toml. The program is `store`, and its argument is its folder.
one_store() {
  cat <<TOML
name = "store"
[[node]]
name    = "n1"
command = ["$work/store", "\${dir}"]
[workload]
command = ["./workload.sh"]
[oracle]
command = ["./oracle.sh"]
[diagnose]
jobs = 2
TOML
}

# finds_limit KIND: checks that diagnose finds a fault of this kind in dump.bin, and that every replay of it reproduces
# the bug, because limits do not depend on times.
finds_limit() {
  expect 0 "$rose" profile -c rose.toml -o profile.json --runs 1
  expect 0 "$rose" diagnose --trace dump.bin -c rose.toml --profile profile.json -o found.toml \
    --stop-after confirmed --json
  grep -qE "^kind += \"$1\"" found.toml || { fail "the limit was not found:"; cat found.toml >&2; }
  expect 0 "$rose" replay found.toml -c rose.toml --runs 4 --json
  json_is 'j["reproduced"]' 4
}
