# Sourced by the tests in which the power goes: what they have in common.
[ -e /dev/loop-control ] || skip "this machine has no loop devices"

# power_goes WHEN: a schedule in which it does, for the folder `data`, on conditions in TOML.
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

# one_node NAME DELAY ORACLE COMMAND: a configuration of a node that starts once more; the last two are lists in TOML.
one_node() {
  cat <<TOML
name = "$1"
[[node]]
name    = "n1"
command = $4
restart = { delay = "$2", max = 1 }
[workload]
command = ["./workload.sh"]
[oracle]
command = $3
TOML
}

# The workload: until the node has told what it found, for $tenths tenths of a second at most.
cat > "$work/workload.sh" <<SH
#!/bin/sh
for i in \$(seq ${tenths:-300}); do grep -q told n1/stdout.log && break; sleep 0.1; done
SH
chmod +x "$work/workload.sh"
