#!/usr/bin/env bash
# A node is killed when a call in its JVM returns, so the process is gone before its agent can report where the thread
# was. A further run, in which the kill comes just before this call, finds the Java frames.
. "$(dirname "$0")/common.bash"
java -version >/dev/null 2>&1 && javac -version >/dev/null 2>&1 || skip "no JDK: apt-get install default-jdk-headless"
cp -r "$here/../planted/java-crash-between-syscalls" "$work/case"
cp -r "$here/../planted/common" "$work/common"
cd "$work/case"
javac -d build Sessions.java
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "kill"
kind = "crash"
node = "login"
when = [ { syscall = "write", path = "*/sessions.properties", count = 5, result = "ok" } ]
TOML
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 2 --no-deepen -o why.md --report report --json
says err 'just before the calls, to record Java frames'
json_is 'j["suspects"][0]["function"]' Sessions.save
# Every failing run has the same frames, and the report says that they come from a run in which the fault came just
# before this call.
json_is '[f["function"] for f in j["stacks"][0]["frames"] if f["function"].startswith("Sessions.")]' \
  "['Sessions.save', 'Sessions.serve', 'Sessions.main']"
json_is '"just before this call" in j["stacks"][0]["why"]' True
expect 0 "$rose" explain --from report -o again.md --json
json_is 'j["suspects"][0]["function"]' Sessions.save
json_is '"Sessions.save" in [f["function"] for f in j["stacks"][0]["frames"]]' True
nothing_left "after an explanation of Java"
