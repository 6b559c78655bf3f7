#!/usr/bin/env bash
# With `--report DIR --redact`, the files in DIR name no host, address, user or token of production or of this machine,
# and still describe what must happen. Tested with `diagnose` and `explain`.
. "$(dirname "$0")/common.bash"
export TMPDIR=$work
cd "$work"

# A node that loses its work when it is killed, and logs this in a line that contains secrets.
secret=4f9a7c1e88d2b3a65f0e
cat > node.sh <<SH2
#!/bin/sh
if [ -e begun ]; then
  echo "lost everything, says db-7.prod.example at 10.9.8.7 to /home/alice with $secret"
fi
touch begun
echo up
exec sleep 600
SH2
chmod +x node.sh
cat > rose.toml <<TOML
name = "redacted"
[[node]]
name = "n1"
command = ["$work/node.sh"]
ready = { log = "up" }
restart = { delay = "10ms", max = 3 }
[workload]
command = ["sh", "-c", "for i in \$(seq 20); do grep -q lost n1/stdout.log && break; sleep 0.1; done"]
[oracle]
command = ["grep", "lost", "n1/stdout.log"]
[diagnose]
confirm_runs = 3
max_runs = 30
jobs = 2
[trace]
network_delay = "1s"
TOML
cat > events.jsonl <<'JSON'
{"meta":{"version":1,"node":"db-7.prod.example","host":"db-7.prod.example","workload_ts":1763755200000000000}}
{"ts":1763755200500000000,"node":"db-7.prod.example","type":"ps","pid":41,"state":"crashed","signal":"SIGKILL","exit_code":null,"duration_ms":null,"planned":false}
{"ts":1763755201000000000,"node":"db-7.prod.example","type":"scf","pid":44,"tid":44,"syscall":"connect","errno":"ECONNREFUSED","fd":3,"path":null,"peer":"10.9.8.7:2380"}
JSON
expect 0 "$rose" dump import events.jsonl -o dump.bin
expect 0 "$rose" profile -c rose.toml -o profile.json --runs 1

machine=$(hostname | sed 's/[.]/[.]/g')
secrets="db-7|prod\.example|10\.9\.8\.7|alice|$secret|(^|[^-.[:alnum:]])$machine([^-.[:alnum:]]|$)"
# told FOLDER: prints the files in the folder that contain a secret, each with the first secret.
told() {
  local file
  find "$1" -type f | while read -r file; do
    case $file in
      *.runs) tail -c +$(($(head -1 "$file" | wc -c) + 1)) "$file" | zstd -dc 2>/dev/null ;;
      *) cat "$file" ;;
    esac | grep -aoE "$secrets" | head -1 | sed "s|^|$file: |"
  done
}

# Without --redact the secrets are there, which shows that the search below would find them.
expect 0 "$rose" diagnose --trace dump.bin --map db-7.prod.example=n1 -c rose.toml --profile profile.json \
  -o schedule.toml --report plain --stop-after found
[ -n "$(told plain)" ] || fail "the plain report contains no secret, so the test proves nothing"
[ -e plain/record.jsonl ] || fail "no record"

expect 0 "$rose" diagnose --trace dump.bin --map db-7.prod.example=n1 -c rose.toml --profile profile.json \
  -o schedule.toml --report shown --redact
[ -z "$(told shown)" ] || fail "the redacted report contains secrets: $(told shown)"
[ "$(ls shown | tr '\n' ' ')" = "diagnosis.json diagnosis.txt report.html " ] ||
  fail "the folder contains other files: $(ls shown)"
grep -q 'kill n1' shown/report.html || fail "the redacted report does not describe the faults any more"
grep -q 'host-1' shown/report.html || fail "the report names no host at all"
python3 -c 'import json, sys; sys.exit(json.load(open("shown/diagnosis.json"))["verdict"] != "reproduced")' ||
  fail "diagnosis.json is damaged"
[ -z "$(find "$work" -maxdepth 1 -name 'rose-report*')" ] || fail "left: $(ls -d rose-report*)"

# On a busy machine, the differences may be explained by chance (exit code 4). What is written must be redacted
# nevertheless.
explain() {
  local status=0
  "$rose" explain "$@" > out 2> err || status=$?
  [ $status -eq 0 ] || [ $status -eq 4 ] || { fail "explain $* ends with $status"; tail -5 err >&2; }
}
explain schedule.toml -c rose.toml --runs 4 --report told --redact -o explanation.md
[ -z "$(told told)" ] || fail "explain's redacted report contains secrets: $(told told)"
[ ! -e told/record.jsonl ] && [ ! -e told/traces ] || fail "explain kept its record: $(ls told)"
explain --from told

# Options that contradict redaction are refused.
expect 2 "$rose" diagnose --trace dump.bin -c rose.toml --redact
says err "no --report"
expect 2 "$rose" diagnose --trace dump.bin -c rose.toml --report shown --redact --resume
says err "cannot be combined with"
expect 2 "$rose" diagnose --trace dump.bin --map db-7.prod.example=n1 -c rose.toml --report plain --redact
says err "not redacted"
