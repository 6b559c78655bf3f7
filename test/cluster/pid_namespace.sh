#!/usr/bin/env bash
# In another PID namespace, BPF programs see other process ids than rose does. Therefore runs are refused before
# anything starts, and `rose doctor` reports the reason.
. "$(dirname "$0")/common.bash"
cd "$work"
command -v unshare >/dev/null || skip "unshare (util-linux) is missing"
inside() { unshare --pid --fork --kill-child --mount-proc "$@"; }

cat > rose.toml <<'TOML'
name = "ids"
[[node]]
name = "a"
command = ["/bin/sh", "-c", "touch started; exec sleep 1000"]
[workload]
command = ["/bin/true"]
[oracle]
command = ["/bin/true"]
TOML
cat > schedule.toml <<'TOML'
version = 1
name = "crash"
[[fault]]
id = "kill"
kind = "crash"
node = "a"
TOML
expect 3 inside "$rose" replay schedule.toml -c rose.toml --runs 1 --report report
says err 'rose replay.*PID namespace'
says err 'pid=host'
[ ! -e report/runs/run-0001/a/started ] || fail "a node was started"
expect 3 inside "$rose" trace --pid 1 --duration 1s -o dump.bin
says err 'rose trace.*PID namespace'
[ ! -e dump.bin ] || fail "a dump was written although nothing was traced"
expect 3 inside "$rose" trace -o dump.bin -- /bin/true
says err 'PID namespace'
expect 0 inside "$rose" trace --cgroup "$cgroups" --duration 100ms -o dump.bin
expect 3 inside "$rose" profile -c rose.toml --runs 1
expect 0 inside "$rose" doctor --json
json_is '[c["ok"] for c in j["capabilities"] if c["name"] == "process_ids"]' '[False]'
json_is '"pid=host" in [c["remedy"] for c in j["capabilities"] if c["name"] == "process_ids"][0]' True
expect 0 inside "$rose" heal
# Separate network and mount namespaces are accepted, and so is a node in another PID namespace.
sed -i 's#command = \["/bin/sh"#command = ["/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "/bin/sh"#' rose.toml
cat > schedule.toml <<'TOML'
version = 1
name = "kill-at-touch"
[[fault]]
id = "kill"
kind = "crash"
node = "a"
when = [ { syscall = "openat", path = "*/started" } ]
TOML
sed -i 's#\["/bin/true"\]#["/bin/sh", "-c", "until [ -e a/started ]; do sleep 0.02; done"]#' rose.toml
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 1
nothing_left "at the end"
