#!/usr/bin/env bash
# Tests what users may rely on at the command line: the variables that commands get, when a dump is written, and what is
# refused before a run.
. "$(dirname "$0")/common.bash"
cd "$work"

# deployment FILE WORKLOAD ORACLE [LINES OF DEPLOYMENT]: writes a configuration. WORKLOAD and ORACLE are TOML lists
# without their brackets.
deployment() {
  cat > "$1" <<TOML
name = "contract"
[deployment]
subnet = "10.126.0.0/24"
${4:-}
[[node]]
name = "n-1"
ip = "10.126.0.9"
user = "nobody"
command = ["/bin/sh", "-c", "echo \$ROSE_NODE \$ROSE_IP \$(id -un) \$PEERS \$PWD; : > data; exec sleep 100"]
env = { PEERS = "\${ips}" }
ready = { command = ["test", "-e", "n-1/data"], timeout = "60s" }
[[node]]
name = "b"
command = ["/bin/sh", "-c", "echo up; exec sleep 100"]
ready = { log = "^up" }
[workload]
command = [$2]
timeout = "60s"
[oracle]
command = [$3]
timeout = "5s"
TOML
}

# Check the variables that commands get, restarts by `rose node`, and an incident that enters a node's namespace.
cat > workload.sh <<'SH'
#!/bin/sh
set -ex
[ "$ROSE_NODES" = "n-1 b" ] && [ "$ROSE_IP_n_1" = 10.126.0.9 ] && [ "$ROSE_IP_b" = 10.126.0.1 ] && [ "$ROSE_RUN" = 1 ]
[ "$PWD" = "$ROSE_RUN_DIR" ]
first=$(cat "$ROSE_PIDFILE_b")
grep -qx "$first" "$ROSE_CGROUP_b/cgroup.procs"
"$ROSE_EXE" node restart b
second=$(cat "$ROSE_PIDFILE_b")
[ "$first" != "$second" ]
grep -qx "$second" "$ROSE_CGROUP_b/cgroup.procs"
"$ROSE_EXE" node stop n-1
! [ -s "$ROSE_PIDFILE_n_1" ]
grep -q "^n-1 10.126.0.9 nobody 10.126.0.9,10.126.0.1 $ROSE_RUN_DIR/n-1\$" n-1/stdout.log
: > told
SH
chmod 755 workload.sh
deployment env.toml '"./workload.sh"' '"test", "-e", "told"' 'setup = ["sh", "-c", "echo setup > order"]
teardown = ["sh", "-c", "echo teardown >> order; mv order '"$work"'/"]'
expect 0 "$rose" trace -c env.toml -o env.bin --json \
  --incident "ip netns exec \$ROSE_NETNS_n_1 ip -o -4 addr show | grep -q 10.126.0.9 || exit 9"
json_is 'j["verdict"], j["workload"], j["incident"]' "('reproduced', 'exited with status 0', 'exited with status 0')"
[ "$(cat order)" = $'setup\nteardown' ] || fail "setup and teardown ran as: $(cat order)"
[ "$(stat -c %a env.bin)" = 600 ] || fail "the dump's mode is $(stat -c %a env.bin)"
"$rose" dump show env.bin --format jsonl > a.jsonl
"$rose" dump import a.jsonl -o again.bin -q
"$rose" dump show again.bin --format jsonl | cmp -s - a.jsonl || fail "JSON Lines are not lossless on a real dump"

# If an incident does not make the bug occur, messages say why this may be so: a stop by `rose node` is not recorded as
# a failure, or only the main process of a node was killed. If the run's folder was removed, a message names --keep.
for kind in planned partly; do
  deployment "$kind.toml" '"sleep", "1.5"' '"sh", "-c", "echo all is well; exit 1"'
  sed -i 's|: > data; exec sleep 100|: > data; while sleep 0.1; do read x < none; done 2> /dev/null \& wait|' \
    "$kind.toml"
done
expect 1 "$rose" trace -c planned.toml -o planned.bin --incident '"$ROSE_EXE" node kill n-1'
says out "^stopped by 'rose node', which the dump records as planned and not as a failure: n-1; if this was"
says out "^the oracle printed: all is well$"
says out "^--keep keeps the run's folder"
if grep -q "only the main process" out; then fail "a planned stop is described as a kill: $(cat out)"; fi
expect 1 "$rose" trace -c partly.toml -o partly.bin --incident 'sleep 0.5; kill -9 "$(cat "$ROSE_PIDFILE_n_1")"' --keep
says out "^only the main process was killed, and other processes of the node continued: n-1; "
if grep -q "rose node\|--keep" out; then fail "advice that does not apply: $(cat out)"; fi
expect 1 "$rose" trace -c partly.toml -o all.bin --incident 'sleep 0.5; xargs kill -9 < "$ROSE_CGROUP_n_1/cgroup.procs"'
if grep -q "only the main process" out; then fail "all processes were killed: $(cat out)"; fi

# A file name consists of bytes, whereas JSON is text.
expect 0 "$rose" dump import a.jsonl -o $'no\xffutf8.bin' --json
json_is 'ascii(j["dump"])' "'no\\ufffdutf8.bin'"

# Without --profile, a note says where a profile is, or how to make one.
expect 0 "$rose" diagnose --plan --trace env.bin -c env.toml
says err 'no --profile.*rose profile -c env.toml creates one'
: > profile.json
expect 0 "$rose" diagnose --plan --trace env.bin -c env.toml
says err 'no --profile.*: --profile profile.json'
rm profile.json
# Stops by `rose node` are planned.
grep '"type":"ps"' a.jsonl | grep '"signal":"SIGTERM"' | grep -q '"planned":true' || fail "no planned stop in the dump"

# Ctrl-C in each part of a run: rose tears the run down, and trace -c writes what it has recorded.
known=318.$$  # seconds: no other process sleeps for this time
sleeps() {
  local all  # processes, some of which may have ended already
  all=$(cat /dev/null $(grep -slx sleep /proc/[0-9]*/comm | sed 's/comm$/cmdline/') 2>/dev/null | tr '\0' ' ') || true
  [[ $all == *"sleep $known "* ]]
}
for part in setup ready workload oracle; do
  deployment $part.toml '"true"' '"true"' "teardown = [\"touch\", \"$work/$part.torn\"]"
  case $part in
    setup) sed -i 's/^teardown/setup = ["sleep", "'$known'"]\n&/' $part.toml ;;
    ready) sed -i 's/^ready = { command.*/ready = { command = ["sleep", "'$known'"], timeout = "60s" }/' $part.toml ;;
    workload) sed -i '/^\[workload\]/{n;s/.*/command = ["sleep", "'$known'"]/}' $part.toml ;;
    oracle)
      sed -i '/^\[oracle\]/{n;s/.*/command = ["sleep", "'$known'"]/}; s/timeout = "5s"/timeout = "60s"/' $part.toml
      ;;
  esac
  rm -f dump.bin
  "$rose" trace -c $part.toml >"$work/out" 2>"$work/err" &
  pid=$!
  until_true 60 sleeps || true
  kill -INT $pid
  status=0
  wait $pid || status=$?
  [ $status -eq 4 ] || fail "Ctrl-C during $part: exit $status instead of 4"
  [ -e $part.torn ] || fail "Ctrl-C during $part: no teardown"
  expect 0 "$rose" dump show dump.bin
done
nothing_left "after Ctrl-C"

# These are refused before anything starts. No run is made whose result could not be written.
deployment plain.toml '"true"' '"false"' "setup = [\"touch\", \"$work/started\"]"
printf 'version = 1\nname = "s"\n[[fault]]\nid = "k"\nkind = "crash"\nnode = "b"\n' > s.toml
expect 2 "$rose" trace -c plain.toml -o /nonexistent/dump.bin
says err '^rose: error: -o: cannot write /nonexistent/dump.bin'
expect 2 "$rose" profile -c plain.toml -o "$work"
says err 'is a directory'
expect 2 "$rose" replay s.toml -c plain.toml --junit /nonexistent/junit.xml
expect 2 "$rose" diagnose --trace env.bin -c plain.toml -o /nonexistent/schedule.toml
expect 2 "$rose" replay s.toml -c plain.toml --expect maybe
expect 2 "$rose" diagnose --trace env.bin -c plain.toml --resume
expect 2 "$rose" explode
says err "'explode'"
expect 2 "$rose" replay s.toml -c plain.toml --run 3
says err "'rose replay' has no option '--run'"
says err "did you mean '--runs'"
expect 2 "$rose" dump show log.bin --sumary
says err "see 'rose dump show --help'"
expect 2 "$rose" profile -c plain.toml surplus
says err "'rose profile' takes no further argument: 'surplus'"
# Each message names the option and the values that are accepted.
expect 2 "$rose"
says err 'no command is named'
says err 'the commands are: init, profile'
expect 2 "$rose" --verbose doctor
says err "options follow the command: 'rose COMMAND --verbose'"
expect 2 "$rose" -x
says err "'rose' itself has no option '-x'"
expect 2 "$rose" trace -x
says err "'rose trace' has no option '-x'"
expect 2 "$rose" trace --pid
says err '^rose: error: --pid: its PID is missing'
expect 2 "$rose" doctor --json=3
says err '^rose: error: --json takes no value'
expect 2 "$rose" dump show
says err "'rose dump show' needs its FILE: The dump"
expect 2 "$rose" dump merge env.bin
says err "'rose dump merge' needs --output FILE"
expect 2 "$rose" dump show env.bin --format tetx
says err "'tetx' is not one of text, jsonl, perfetto, html"
expect 2 "$rose" dump show env.bin --type scf,xx
says err "'xx' is not one of scf, af, nd, ps, sys"
expect 2 "$rose" replay s.toml -c plain.toml --jobs many
says err "'many' is neither a number from 1 to 64 nor 'auto'"
# If a file is missing, the message names the option, or the command that writes the file.
expect 2 "$rose" profile -c nowhere.toml
says err "cannot open nowhere.toml: No such file or directory"
says err "hint: name the configuration of the test deployment with -c; 'rose init' writes one"
expect 2 "$rose" trace --pid $$ --profile nowhere.json
says err "hint: 'rose profile -c rose.toml' makes a profile"
expect 2 "$rose" dump --control /nonexistent/sock
says err "no tracer is listening at '/nonexistent/sock': the folder does not exist"
says err "hint: start one with 'rose trace'"
[ ! -e started ] || fail "something was started before the refusal"
