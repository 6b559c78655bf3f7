#!/usr/bin/env bash
# A deployment with IPv6 addresses. The tracer detects by addresses that a node's link is down. From this, `diagnose`
# derives a partition, which drops IPv6 packets as well.
. "$(dirname "$0")/common.bash"
cd "$work"

cat > node.py <<'PY'
import os, socket, sys, threading, time
own, peers = os.environ["ROSE_IP"], [ip for ip in sys.argv[1].split(",") if ip != os.environ["ROSE_IP"]]
server = socket.create_server((own, 7000), family=socket.AF_INET6, backlog=16)
def serve():
    while True:
        peer, _ = server.accept()
        threading.Thread(target=echo, args=(peer,), daemon=True).start()
def echo(peer):
    while data := peer.recv(64):
        peer.sendall(data)
threading.Thread(target=serve, daemon=True).start()
print("up", flush=True)
def talk(ip):
    met = False
    while True:
        try:
            with socket.create_connection((ip, 7000), timeout=1.5) as peer:
                while True:
                    peer.sendall(b"beat")
                    if not peer.recv(64):
                        break
                    met = True
                    time.sleep(0.05)
        except OSError:
            if met:
                print("lost", ip, flush=True)
            time.sleep(0.1)
for ip in peers:
    threading.Thread(target=talk, args=(ip,), daemon=True).start()
time.sleep(60)
PY
cat > rose.toml <<'TOML'
name = "ipv6"
[deployment]
subnet = "fd00:77:6::/64"
[[node]]
name = "n1"
command = ["python3", "${config_dir}/node.py", "${ips}"]
ready = { tcp = 7000, timeout = "60s" }
[[node]]
name = "n2"
command = ["python3", "${config_dir}/node.py", "${ips}"]
ready = { tcp = 7000, timeout = "60s" }
[[node]]
name = "n3"
command = ["python3", "${config_dir}/node.py", "${ips}"]
ready = { tcp = 7000, timeout = "60s" }
[workload]
command = ["sleep", "5"]
[oracle]
command = ["grep", "-q", "lost fd00:77:6::2", "n1/stdout.log"]
[trace]
network_delay = "1s"
TOML
expect 0 "$rose" trace -c rose.toml -o dump.bin \
  --incident 'sleep 1; ip -n "$ROSE_NETNS_n2" link set rose0 down; sleep 2.5; ip -n "$ROSE_NETNS_n2" link set rose0 up'
expect 0 "$rose" dump show dump.bin --type nd --format jsonl
says out '"fd00:77:6::2"'
expect 0 "$rose" diagnose --trace dump.bin -c rose.toml -o schedule.toml --jobs 3 --stop-after found --json
json_is 'j["verdict"]' reproduced
grep -q 'kind *= "partition"' schedule.toml || fail "no partition: $(cat schedule.toml)"
