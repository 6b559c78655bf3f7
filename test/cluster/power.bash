# Sourced by the tests of power loss. It contains the functions that they share.
[ -e /dev/loop-control ] || skip "this machine has no loop devices"

# power_goes WHEN: prints a schedule with a power loss of the folder `data`. WHEN contains conditions in TOML.
power_goes() {
  cat <<TOML
version = 1
[[fault]]
id = "power"
kind = "crash"
node = "n1"
lose = "unsynced"
path = "data"
when = [ $1 ]
TOML
}

# one_node NAME DELAY ORACLE COMMAND [READY]: prints a configuration with one node, which is restarted after DELAY.
# ORACLE and COMMAND are lists in TOML; READY is a table.
one_node() {
  cat <<TOML
name = "$1"
[[node]]
name    = "n1"
command = $4
${5:+ready = $5}
restart = { delay = "$2", max = 1 }
[workload]
command = ["./workload.sh"]
[oracle]
command = $3
TOML
}

# The workload waits until the node has printed what it found, but at most $tenths tenths of a second.
cat > "$work/workload.sh" <<SH
#!/bin/sh
for i in \$(seq ${tenths:-300}); do grep -q told n1/stdout.log && break; sleep 0.1; done
SH
chmod +x "$work/workload.sh"
