#!/usr/bin/env bash
# Workers return damaged results, or none. This is reported, another worker makes the run, and the search finds the same
# schedule.
. "$(dirname "$0")/common.bash"
. "$here/workers.bash"

# A filter between a diagnosis and a worker. For the first worker, `flip` changes one bit of each run that the worker
# sends, and `none` sends an empty trace with a correct digest.
cat > "$work/between.py" <<'PY'
import hashlib, json, struct, subprocess, sys, threading
how, first = sys.argv[1], sys.argv[2] == "0"
worker = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def forward():
    while data := sys.stdin.buffer.raw.read(65536):
        worker.stdin.write(data)
        worker.stdin.flush()
    worker.stdin.close()
threading.Thread(target=forward, daemon=True).start()
while head := worker.stdout.read(12):
    header_size, payload_size = struct.unpack("<II", head[4:])
    header, payload, end = worker.stdout.read(header_size), worker.stdout.read(payload_size), worker.stdout.read(1)
    if first and json.loads(header)["type"] == "made":
        if how == "flip":
            payload = bytearray(payload)
            payload[len(payload) // 2] ^= 4
        else:
            text = json.loads(header)
            del text["sha256"]
            text["trace"] = 0
            plain = json.dumps(text, separators=(",", ":")).encode()
            digest = hashlib.sha256(plain + payload).hexdigest()
            header = plain[:-1] + b',"sha256":"' + digest.encode() + b'"}'
            head = b"ROSE" + struct.pack("<II", len(header), len(payload))
    sys.stdout.buffer.write(head + header + bytes(payload) + end)
    sys.stdout.buffer.flush()
sys.exit(worker.wait())
PY
export BETWEEN=$work/between.py ROSE=$rose
for how in flip none; do
  # The first worker that starts gets the filter.
  cat > "$work/starts-$how" <<SH
#!/bin/sh
if mkdir "$work/first-$how" 2>/dev/null; then exec python3 "$work/between.py" $how 0 "$rose" worker; fi
exec python3 "$work/between.py" $how 1 "$rose" worker
SH
  chmod +x "$work/starts-$how"
  diagnose "$how" --engine "$work/starts-$how" --workers 2
  ends_with 0 "$how"
grep -q '"\*/two"' "$work/$how.toml" || fail "$how: the schedule found does not affect the second file"
  [ "$(ls "$work/$how/traces" | wc -l)" -eq "$(runs "$how")" ] || fail "$how: traces are missing"
  ! grep -q 'workers were lost' "$work/$how/record.jsonl" || fail "$how: a run was abandoned"
  grep -q 'another worker makes its run' "$work/$how.err" ||
    { fail "$how: the repeated run is not reported"; tail -5 "$work/$how.err" >&2; }
done
grep -q "a message 'made' was damaged on its way" "$work/flip.err" || fail "flip: the damaged message is not reported"
grep -q 'the worker did not send a run' "$work/none.err" || fail "none: the missing run is not reported"
until_true 60 no_folders
nothing_left "by damaged workers"
