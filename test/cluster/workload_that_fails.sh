#!/usr/bin/env bash
# If a workload failed, it did no work, so trace reports this instead of reporting that the bug is absent.
. "$(dirname "$0")/common.bash"
export TMPDIR=$work
cd "$work"

# configuration WORKLOAD: writes rose.toml.
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
says out 'inconclusive: the workload did no work: it exited with status 1'
says err 'cannot connect'
# If there is an incident, it may be the reason why the workload failed.
expect 4 "$rose" trace -c rose.toml --incident 'sleep 2' -o dump.bin --quiet
says err 'warning: the workload exited with status 1'
configuration 'sleep 1.5; exit 1'
expect 1 "$rose" trace -c rose.toml --incident : -o dump.bin
says out 'not-reproduced'
configuration 'exit 0'
expect 1 "$rose" trace -c rose.toml -o dump.bin --keep
says err "kept in $work/rose-runs"

# Before a failing run is learnt as normal, a warning is printed, with the reasons and the last output.
configuration 'echo cannot connect; exit 1'
sed -i 's/^command = \["false"\]/command = ["sh", "-c", "echo who knows; exit 3"]/' rose.toml
expect 0 "$rose" profile -c rose.toml
says err 'warning: run 1: the workload exited with status 1'
says err '^cannot connect'
says err 'warning: run 1: the oracle could not decide: the oracle exited with status 3'
says err '^who knows'

# A node that ends by itself is reported, too. Without `ready`, rose does not wait for the node.
configuration 'exit 0'
sed -i 's/^command = \["sleep", "1000"\]/command = ["sh", "-c", "echo no such option; exit 7"]/' rose.toml
configured=$(cat rose.toml)
# The node may end while the workload runs.
sed -i 's/"exit 0"/"while [ -s \\"$ROSE_PIDFILE_n1\\" ]; do sleep 0.05; done"/' rose.toml
[ "$(cat rose.toml)" != "$configured" ] || fail "the workload does not wait"
for command in "profile -c rose.toml --runs 2" "trace -c rose.toml -o dump.bin"; do
  status=0
  [ "${command%% *}" = profile ] || status=1
  # shellcheck disable=SC2086
  expect $status "$rose" $command
  says err 'warning: node n1 exited with status 7, although no fault was injected and nothing stopped it'
  says err '^no such option'
  [ "$(grep -c 'node n1 exited' err)" = 1 ] || fail "reported more than once: $(cat err)"
done

# What the node printed before its end is shown, not the output of its next start.
configuration 'until [ -e n1/up ]; do sleep 0.05; done'
cat > again.sh <<'SH'
if [ -e began ]; then yes 'all is well' | head -n 50; touch up; exec sleep 1000; fi
touch began; echo no such option; exit 7
SH
restarted='command = ["sh", "${config_dir}/again.sh"]\nrestart = { delay = "10ms", max = 3 }'
sed -i "s|^command = \[\"sleep\", \"1000\"\]|$restarted|" rose.toml
expect 0 "$rose" profile -c rose.toml
says err 'warning: node n1 exited with status 7'
says err '^no such option'
if grep 'all is well' err; then fail "the output of the next start is taken for the reason"; fi

# A word of a command may look like a file beside the configuration, but rose looks up only the first word there. The
# message about the failed command says so.
mkdir bin
echo 'exit 1' > bin/script
configuration 'exit 0'
sed -i 's/^command = \["sleep", "1000"\]/command = ["sh", "bin\/script"]\nready = { tcp = 80 }/' rose.toml
expect 4 "$rose" profile -c rose.toml
says err "'bin/script' names no file in .*/n1, where the command ran, but one beside the configuration: write '.\{config_dir\}/bin/script' for that"
configuration 'exit 0'
sed -i 's/^command = \["false"\]/command = ["sh", "bin\/script"]/' rose.toml
expect 4 "$rose" trace -c rose.toml -o dump.bin
says err "'bin/script' names no file in "

# A workload that always fails cannot prove that a bug is fixed.
rm -f profile.json
configuration 'exit 1'
printf 'version = 1\n[[fault]]\nid = "k"\nkind = "crash"\nnode = "n1"\n' > s.toml
expect 4 "$rose" replay s.toml -c rose.toml --runs 2 --expect fixed
says out 'inconclusive: .*the workload did no work: it exited with status 1 and exchanged no data with any node'
configuration 'exit 0'
expect 0 "$rose" replay s.toml -c rose.toml --runs 2 --expect fixed
! grep -q 'workload failed' err || fail "a working workload is reported as doubtful"
# If functions cannot be looked up, the message names the node.
sed -i 's/^command = \["sleep", "1000"\]/&\nfunctions = ["f"]\nbinary = "nowhere"/' rose.toml
expect 2 "$rose" profile -c rose.toml
says err 'node n1: its functions: .*nowhere: No such file'
