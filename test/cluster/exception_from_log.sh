#!/usr/bin/env bash
# A Java program loses a block when a checksum does not match. No system call fails; the only evidence is the stack
# trace of the exception in the log. The diagnosis finds a schedule that throws this exception when the method at the
# top of the trace is entered. Only in some calls of the method does the exception lose a block.
. "$(dirname "$0")/common.bash"
classes=$build/test/programs/java
[ -e "$classes/compiled" ] || skip "no Java compiler when this was built: apt-get install default-jdk-headless, then build again"
java -version >/dev/null 2>&1 || skip "no \`java\`: apt-get install default-jdk-headless"
rose=$(realpath "$rose")
cd "$work"
flags="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
# shellcheck disable=SC2086
java $flags -cp "$classes" org.rose.test.Ledger 12 8 2> production.log
[ "$(wc -l < ledger)" = 11 ] || fail "the damaged block is lost: $(cat ledger)"

cat > rose.toml <<TOML
name = "ledger"
[[node]]
name = "n1"
command = ["java", $(printf '"%s", ' $flags)"-cp", "$classes", "org.rose.test.Ledger", "12"]
[workload]
command = ["sh", "-c", "while kill -0 \$(cat \$ROSE_PIDFILE_n1); do sleep 0.02; done 2> /dev/null"]
timeout = "30s"
[oracle]
command = ["sh", "-c", "test -s n1/ledger && [ \$(wc -l < n1/ledger) -lt 12 ]"]
TOML

# The plan, without a run: the exception, where it is thrown, and which message reports it.
expect 0 "$rose" diagnose --plan --log n1=production.log -c rose.toml --json
json_is 'j["candidates"][0]["kind"], j["candidates"][0]["throws"]' \
  "('exception', 'org.rose.test.Ledger\$ChecksumException')"
json_is 'j["candidates"][0]["function"], j["candidates"][0]["line"]' "('org.rose.test.Ledger.check', None)"
json_is '"a block is damaged" in j["candidates"][0]["why"], "Ledger.check(Ledger.java:" in j["candidates"][0]["why"]' \
  "(True, True)"

expect 0 "$rose" diagnose --log n1=production.log -c rose.toml -o schedule.toml --jobs 2 --report report \
  --stop-after found --json
json_is 'j["verdict"]' reproduced
json '"%d schedules, %d runs, %.0f s" % (j["schedules"], j["runs"], j["seconds"])'
grep -q '^kind *= "exception"' schedule.toml || fail "the schedule does not throw the exception: $(cat schedule.toml)"
grep -q '^throws *= "org.rose.test.Ledger[$]ChecksumException"' schedule.toml ||
  fail "the schedule does not throw the exception: $(cat schedule.toml)"
grep -Eq '^count *= (4|8|12)$' schedule.toml ||
  fail "the schedule does not have the right entry of the method: $(cat schedule.toml)"
replays 2 schedule.toml rose.toml --jobs 2
nothing_left "by a diagnosis that throws"
