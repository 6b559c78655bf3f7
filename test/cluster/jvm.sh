#!/usr/bin/env bash
# Methods of Java in schedules: conditions and exceptions on a node whose command is a script that starts a JVM.
. "$(dirname "$0")/common.bash"
classes=$build/test/programs/java
[ -e "$classes/compiled" ] || skip "no Java compiler when this was built: apt-get install default-jdk-headless, then build again"
java -version >/dev/null 2>&1 || skip "no \`java\`: apt-get install default-jdk-headless"
cd "$work"
# The server runs as another user, who may not be able to enter the build folder.
cp -r "$classes" classes
classes=$work/classes

# The server holds a lock while it runs, and the workload waits until the lock is free.
cat > server.sh <<SH
#!/bin/sh
exec 9> "\$ROSE_RUN_DIR/n1/lock"
flock 9
touch "\$ROSE_RUN_DIR/n1/held"
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$classes" org.rose.test.Victim "\$@"
SH
chmod +x server.sh
# config FILE PART ORACLE: configures one server that executes this part of Victim.java 40 times. The oracle's command
# looks for the bug in the server's output.
config() {
  cat > "$1" <<TOML
name = "jvm"
[[node]]
name = "n1"
command = ["./server.sh", "$2", "40", "1"]
env = { JAVA_TOOL_OPTIONS = "-Dof=theirs" }
user = "nobody"
[workload]
command = ["sh", "-c", "until [ -e n1/held ]; do sleep 0.02; done; flock n1/lock true"]
timeout = "60s"
[oracle]
command = ["sh", "-c", '$3']
TOML
}

# A crash at the 23rd entry: in every run, exactly 22 steps were done.
config crash.toml step '[ "$(tail -n 1 n1/stdout.log)" = "step 22" ]'
cat > crash_schedule.toml <<'TOML'
version = 1
name = "jvm"
[[fault]]
id = "die"
kind = "crash"
node = "n1"
when = [ { function = "org.rose.test.Victim.step", count = 23 } ]
TOML
expect 0 "$rose" replay crash_schedule.toml -c crash.toml --runs 4 --json
json_is 'j["verdict"]' reproduced
json_is 'j["faults"][0]["requested"], j["faults"][0]["fired"]' "(4, 4)"
nothing_left "by crashes at a method"

# An exception at a call site, after a condition. The node keeps its own JVM options.
line=$(grep -n 'behind the step' "$here/../programs/java/org/rose/test/Victim.java" | cut -d: -f1)
config throw.toml store 'grep -qx "caught 12 java.io.IOException: disk on fire" n1/stdout.log && grep -q Dof=theirs n1/stderr.log'
cat > throw_schedule.toml <<TOML
version = 1
name = "jvm"
[[fault]]
id = "fire"
kind = "exception"
node = "n1"
throws = "java.io.IOException"
message = "disk on fire"
function = "Victim.store"
line = $line
count = 2
when = [ { function = "org.rose.test.Victim.store", count = 11 } ]
TOML
expect 0 "$rose" replay throw_schedule.toml -c throw.toml --runs 2
says out 'fault fire: fired in 2 of 2 runs'
says out 'thrown in org.rose.test.Victim.store'
nothing_left "by exceptions"

# The profile counts methods, and a trace records those that are infrequent according to the profile.
sed 's/^user = .*/functions = ["org.rose.test.*"]/; s/"step", "40"/"paced", "60"/; s/\["sh", "-c", .\[.*/["false"]/' \
  crash.toml > profiled.toml
expect 0 "$rose" profile -c profiled.toml -o profile.json --runs 1
python3 - <<'PY' || fail "the profile lacks the methods' entries"
import json
functions = {f["function"]: f for f in json.load(open("profile.json"))["functions"]}
assert functions["org.rose.test.Victim.seldom"]["count"] == 2, functions
assert functions["org.rose.test.Victim.main"]["infrequent"], functions
assert not functions["org.rose.test.Victim.busy"]["infrequent"], functions
PY
expect 1 "$rose" trace -c profiled.toml --profile profile.json -o dump.bin
"$rose" dump show dump.bin --type af > entries
for method in seldom named; do
  [ "$(grep -c Victim.$method entries)" = 2 ] || fail "the dump does not have two entries of a rare method"
done
grep -q Victim.busy entries && fail "a method that the profile calls busy is in the dump"
# Each of these cases has its own message: no methods are configured, no class has such a method, there is no agent.
sed '/^functions/d; s/"\.\/server.sh", "paced", "60", "1"/"java", "-cp", "'"${classes//\//\\/}"'", "org.rose.test.Victim", "step", "1", "1"/' profiled.toml > unnamed.toml
expect 0 "$rose" profile -c unnamed.toml -o other.json --runs 1
says err 'none of its methods are named'
sed 's/^functions = .*/functions = ["org.nowhere.*"]/' profiled.toml > nowhere.toml
expect 0 "$rose" profile -c nowhere.toml -o other.json --runs 1
says err 'no class that n1 loaded has a method'
sed 's/exec java/exec env -u JAVA_TOOL_OPTIONS java/' server.sh > bare.sh; chmod +x bare.sh
sed 's/server\.sh/bare.sh/' profiled.toml > bare.toml
expect 0 "$rose" profile -c bare.toml -o other.json --runs 1
says err 'JAVA_TOOL_OPTIONS must reach it'

# If no class has the method, the fault does not fire, and the reason is printed.
sed 's/Victim.step/Victim.stepp/' crash_schedule.toml > never.toml
expect 4 "$rose" replay never.toml -c crash.toml --runs 1
says out 'no class that n1 loaded has it'
# A node without a JVM has no methods, so an exception in a method of this node is refused at once.
sed 's/"\.\/server.sh", "step", "40", "1"/"sleep", "60"/' crash.toml > sleep.toml
expect 2 "$rose" replay throw_schedule.toml -c sleep.toml --runs 1
says err 'is not a method of a JVM that n1 is known to run'

# The command `setup` starts a JVM. It gets the environment variable for the agent, and passes it on.
export SERVICE=$cgroups/rosetest-jvm-$$
mkdir "$SERVICE"
cat > setup.sh <<SH
#!/bin/sh
echo \$\$ > "\$SERVICE/cgroup.procs"
JAVA_TOOL_OPTIONS=\$ROSE_JAVA_TOOL_OPTIONS_n1 setsid java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$classes" org.rose.test.Victim quiet 2000000000 1 > service.out 2>&1 &
pid=\$!
until grep -q step service.out; do kill -0 \$pid || exit 1; sleep 0.05; done
echo \$pid > service.pid
SH
chmod +x setup.sh
cat > attached.toml <<'TOML'
name = "jvm"
[deployment]
network = "host"
setup = ["./setup.sh"]
[[node]]
name = "n1"
attach = { pid_file = "service.pid" }
[workload]
command = ["sh", "-c", 'until grep -q "populated 0" "$SERVICE/cgroup.events"; do sleep 0.05; done']
timeout = "60s"
[oracle]
command = ["sh", "-c", 'grep -q "populated 0" "$SERVICE/cgroup.events"']
TOML
expect 0 "$rose" replay crash_schedule.toml -c attached.toml --runs 1 --allow-attached
says out 'fault die: fired in 1 of 1 run'
echo 1 > "$SERVICE/cgroup.kill"
until_true 10 rmdir "$SERVICE"

# In production, a JVM that was started with the agent is traced while it runs.
expect 2 "$rose" trace --java-agent agent
says err 'needs --profile'
expect 0 "$rose" trace --java-agent agent --profile profile.json --json
options=$(json 'j["options"]')
cat > production.sh <<SH
#!/bin/sh
mkdir -p prod && cd prod
JAVA_TOOL_OPTIONS='"$options"' exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$classes" org.rose.test.Victim paced 100000 1 > ../production.out 2>&1
SH
chmod +x production.sh
./production.sh & pid=$!
until_true 20 grep -q 'Picked up' production.out
"$rose" trace --pid $pid --java-agent agent -o prod.bin --control "$work/prod.sock" > prod.log 2>&1 & tracer=$!
until_true 20 grep -q ready prod.log
first=$(ls prod | wc -l)
until_true 20 sh -c "[ \$(ls prod | wc -l) -ge $((first + 3)) ]"
kill -INT $tracer; wait $tracer || fail "the tracer did not exit with 0"
kill $pid; wait $pid 2>/dev/null || true
"$rose" dump show prod.bin --type af > entries
[ "$(grep -c Victim.seldom entries)" -ge 2 ] ||
  fail "the dump lacks entries of a rare method of an attached JVM: $(cat prod.log entries)"
grep -q Victim.named entries && fail "a method that returns an object is watched in production"
grep -q Victim.busy entries && fail "a method that the profile calls busy is in the dump"
expect 2 "$rose" trace --pid $$ --java-agent nowhere
says err "'nowhere/rose-jvm.so' does not exist"
nothing_left "by a trace of a JVM"
