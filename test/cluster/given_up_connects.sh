#!/usr/bin/env bash
# A proxy gives up each attempt to connect to a server whose link is down, so no call fails and no connection becomes
# silent. Nevertheless, the dump contains the silence, and the plan contains the partition.
. "$(dirname "$0")/common.bash"
command -v python3 >/dev/null || skip "no python3"
command -v ip >/dev/null || skip "no ip"
export TMPDIR=$work
cd "$work"
cat > server.py <<'PY'
import socket

listener = socket.create_server(("", 7000))
print("listening", flush=True)
while True:
    client, _ = listener.accept()
    client.sendall(b"ok\n")
    client.close()
PY
cat > proxy.py <<'PY'
import socket
import time

while True:
    try:
        with socket.create_connection(("server", 7000), timeout=0.4) as server:
            print(server.recv(10).decode().strip() or "closed", flush=True)
    except OSError as error:
        print("failed:", error, flush=True)
    time.sleep(0.05)
PY
cat > rose.toml <<'TOML'
name = "proxied"
[[node]]
name = "server"
command = ["python3", "${config_dir}/server.py"]
ready = { log = "listening" }
[[node]]
name = "proxy"
command = ["python3", "${config_dir}/proxy.py"]
ready = { log = "ok" }
[workload]
command = ["sh", "-c", '''
until [ $(wc -l < proxy/stdout.log) -ge 60 ] || [ $(grep -c failed proxy/stdout.log) -ge 9 ]; do sleep 0.1; done
''']
[oracle]
command = ["grep", "-q", "failed", "proxy/stdout.log"]
[trace]
network_delay = "1s"
TOML
expect 0 "$rose" profile -c rose.toml
expect 0 "$rose" trace -c rose.toml --profile profile.json -o dump.bin \
  --incident 'sleep 1; ip netns exec "$ROSE_NETNS_server" ip link set rose0 down'
"$rose" dump show dump.bin --format jsonl --type nd > silences
python3 - <<'PY' || fail "the silence is not in the dump: $(cat silences)"
import json
found = [json.loads(line) for line in open("silences")]
found = [one for one in found if one.get("type") == "nd" and one["node"] == "proxy"]
assert len(found) == 1, found
assert found[0]["outstanding"] is True and found[0]["duration_ms"] >= 1000, found
PY
expect 0 "$rose" diagnose --plan --trace dump.bin -c rose.toml --profile profile.json --json
json_is 'j["candidates"][0]["kind"], sorted(j["candidates"][0]["nodes"])' "('partition', ['proxy', 'server'])"
nothing_left "after a server without a link"
