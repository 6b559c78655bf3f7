#!/usr/bin/env -S python3 -B
"""The clients of the cluster: the workload and the oracle. Needs only the standard library.

  client.py ready IP       exit 0 when the member at IP serves
  client.py work           the workload: small puts through two members, and a client that watches them on the third
  client.py back-in-time   the oracle: exit 0 if the watch delivered a change that is older than one it had delivered
                           before, 1 if it did not, 2 if that cannot be decided
"""
import base64
import http.client
import json
import os
import selectors
import socket
import sys
import threading
import time
import urllib.request

SECONDS = 19
WRITERS = 48             # number of connections that write
PUTS_A_SECOND = 1000


def b64(text):
    return base64.b64encode(text.encode()).decode()


def addresses():
    return [os.environ["ROSE_IP_" + name.replace("-", "_")] for name in os.environ["ROSE_NODES"].split()]


def ready(ip):
    body = json.dumps({"key": b64("ready")}).encode()
    with urllib.request.urlopen(f"http://{ip}:2379/v3/kv/range", data=body, timeout=2) as answer:
        return 0 if "header" in json.load(answer) else 1


class Follower(threading.Thread):
    """Watches "state/" through one member, from the first change on. A watch that breaks is continued after the last
    change that it delivered."""

    def __init__(self, ip):
        super().__init__(daemon=True)
        self.ip = ip
        self.last = 0
        self.seen = open("seen.txt", "a", buffering=1)

    def run(self):
        while True:
            connection = http.client.HTTPConnection(self.ip, 2379, timeout=60)
            try:
                request = {"key": b64("state/"), "range_end": b64("state0"), "start_revision": self.last + 1}
                connection.request("POST", "/v3/watch", json.dumps({"create_request": request}))
                response = connection.getresponse()
                while line := response.readline():
                    for event in json.loads(line).get("result", {}).get("events", []):
                        self.last = int(event["kv"]["mod_revision"])
                        self.seen.write(f"{self.last}\n")
            except (OSError, http.client.HTTPException, ValueError):
                pass
            connection.close()
            time.sleep(0.2)


class Writer:
    """A non-blocking connection with at most one put in progress."""

    def __init__(self, work, ip):
        self.work = work
        self.ip = ip
        self.busy = False
        self.input = b""
        self.output = b""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex((ip, 2379))
        work.selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def put(self, key, value):
        self.busy = True
        data = json.dumps({"key": b64(key), "value": value})
        self.output += f"POST /v3/kv/put HTTP/1.1\r\nHost: {self.ip}\r\nContent-Length: {len(data)}\r\n\r\n{data}".encode()
        self.work.selector.modify(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def happens(self, mask):
        if mask & selectors.EVENT_WRITE:
            if self.output:
                self.output = self.output[self.socket.send(self.output):]
            if not self.output:
                self.work.selector.modify(self.socket, selectors.EVENT_READ, self)
        if mask & selectors.EVENT_READ:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("the connection ended")
            self.input += data
            self.receive()

    def receive(self):
        head, end, body = self.input.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0]):
            return
        self.input = b""
        self.busy = False
        if head.startswith(b"HTTP/1.1 200"):
            self.work.acknowledged += 1

    def close(self):
        self.work.selector.unregister(self.socket)
        self.socket.close()


class Work:
    """Puts through the first two members; the watching client is connected to the third, which is nearest to it."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.acknowledged = 0
        ips = addresses()
        self.writers = [Writer(self, ips[i % 2]) for i in range(WRITERS)]
        Follower(ips[2]).start()

    def run(self):
        value = b64("x" * 64)
        begin = time.monotonic()
        sent = 0
        while (now := time.monotonic() - begin) < SECONDS:
            for writer in self.writers:
                if not writer.busy and sent < now * PUTS_A_SECOND:
                    sent += 1
                    writer.put(f"state/{sent % 3000}", value)
            for key, mask in self.selector.select(0.002):
                try:
                    key.data.happens(mask)
                except (OSError, ValueError):
                    key.data.close()
                    self.writers[self.writers.index(key.data)] = Writer(self, key.data.ip)
        print(f"{self.acknowledged} of {sent} puts acknowledged")
        return 0 if self.acknowledged else 1


def back_in_time():
    last = 0
    with open("seen.txt") as seen:
        for line in seen:
            if not line.endswith("\n"):
                break  # it is being written
            revision = int(line)
            if revision < last:
                print(f"the watch showed revision {revision} after {last}")
                return 0
            last = revision
    print(f"the watch showed no change from the past; the last was {last}")
    return 1 if last else 2


def main():
    try:
        if sys.argv[1:2] == ["ready"] and len(sys.argv) == 3:
            return ready(sys.argv[2])
        if sys.argv[1:] == ["work"]:
            return Work().run()
        if sys.argv[1:] == ["back-in-time"]:
            return back_in_time()
    except (OSError, ValueError) as error:
        print(f"client.py: {error}", file=sys.stderr)
        return 2
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
