#!/usr/bin/env python3
"""What speaks to the cluster from outside, on the standard library alone.

  client.py ready IP       exit 0 when the member at IP serves
  client.py work           the workload: some documents, then small puts, and readers that follow what changes
  client.py back-in-time   the oracle: exit 0 when a watch showed changes from before the revision it was asked to
                           begin at, 1 when none did, 2 when it can't tell
"""
import base64
import collections
import json
import os
import selectors
import socket
import sys
import time
import urllib.request

SECONDS = 16
WRITERS = 48             # connections
PUTS_A_SECOND = 1500
DOCUMENTS = 24           # of a mebibyte, put first
READER_EVERY = 0.03      # s: readers come with the revision they know, and want the next change
READER_PATIENCE = 2.0    # s: then they ask again


def b64(text):
    return base64.b64encode(text.encode()).decode()


def request(ip, path, body):
    data = json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (path.encode(), ip.encode(), len(data)) + data


def addresses():
    return [os.environ["ROSE_IP_" + name.replace("-", "_")] for name in os.environ["ROSE_NODES"].split()]


def ready(ip):
    body = json.dumps({"key": b64("ready")}).encode()
    with urllib.request.urlopen(f"http://{ip}:2379/v3/kv/range", data=body, timeout=2) as answer:
        return 0 if "header" in json.load(answer) else 1


class Connection:
    """A connection that is not waited for."""

    def __init__(self, work, ip):
        self.work = work
        self.ip = ip
        self.input = b""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex((ip, 2379))
        self.output = b""
        work.selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def send(self, data):
        self.output += data
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

    def close(self):
        if self.socket.fileno() >= 0:
            self.work.selector.unregister(self.socket)
            self.socket.close()


class Writer(Connection):
    """One put at a time."""
    busy = False

    def put(self, key, value):
        self.busy = True
        self.send(request(self.ip, "/v3/kv/put", {"key": b64(key), "value": value}))

    def receive(self):
        head, end, body = self.input.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
        if len(body) < length:
            return
        self.input = b""
        self.busy = False
        if head.startswith(b"HTTP/1.1 200"):
            self.work.acknowledged += 1
            self.work.revision = max(self.work.revision, int(json.loads(body)["header"]["revision"]))


class Reader(Connection):
    """Asks for the next change of "state/" from a revision on; done when it came, or takes too long."""

    def __init__(self, work, ip, revision):
        super().__init__(work, ip)
        self.revision = revision
        self.end = time.monotonic() + READER_PATIENCE
        self.send(request(ip, "/v3/watch", {"create_request": {"key": b64("state/"), "range_end": b64("state0"),
                                                              "start_revision": revision}}))

    def receive(self):
        *lines, self.input = self.input.split(b"\n")
        for line in lines:
            if not line.startswith(b"{"):   # of HTTP
                continue
            for event in json.loads(line).get("result", {}).get("events", []):
                self.work.log(self.ip, self.revision, int(event["kv"]["mod_revision"]))
                raise ConnectionError("all that was wanted")


class Work:
    """Puts through the first two members; readers ask the third, which is nearest to them."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.acknowledged = 0
        self.revision = 0
        self.seen = open("seen.txt", "a", buffering=1)
        self.ips = addresses()
        self.writers = [Writer(self, self.ips[i % 2]) for i in range(WRITERS)]

    def log(self, ip, wanted, got):
        self.seen.write(f"{ip} {wanted} {got}\n")

    def put_documents(self):
        value = b64("x" * (1 << 20))
        for number in range(DOCUMENTS):
            body = json.dumps({"key": b64(f"document/{number}"), "value": value}).encode()
            for tries in range(5):
                try:
                    with urllib.request.urlopen(f"http://{self.ips[0]}:2379/v3/kv/put", data=body, timeout=10) as answer:
                        json.load(answer)
                    break
                except OSError:   # while it has no leader
                    if tries == 4:
                        raise
                    time.sleep(0.5)

    def run(self):
        self.put_documents()
        value = b64("x" * 64)
        begin = time.monotonic()
        sent = asked = 0
        readers = collections.deque()
        while (now := time.monotonic() - begin) < SECONDS:
            for writer in self.writers:
                if not writer.busy and sent < now * PUTS_A_SECOND:
                    sent += 1
                    writer.put(f"state/{sent % 3000}", value)
            if self.revision and asked < now / READER_EVERY:
                asked += 1
                readers.append(Reader(self, self.ips[2], self.revision + 1))
            while readers and readers[0].end < begin + now:
                readers.popleft().close()
            for key, mask in self.selector.select(0.002):
                try:
                    key.data.happens(mask)
                except (OSError, ValueError):
                    key.data.close()
                    if key.data in self.writers:
                        at = self.writers.index(key.data)
                        self.writers[at] = Writer(self, key.data.ip)
        print(f"{self.acknowledged} of {sent} puts acknowledged, {asked} readers")
        return 0 if self.acknowledged else 1


def back_in_time():
    back = total = 0
    with open("seen.txt") as seen:
        for line in seen:
            ip, wanted, got = line.split()
            total += 1
            if int(got) < int(wanted):
                back += 1
                if back == 1:
                    print(f"{ip}: asked for changes from revision {wanted} on, a watch showed {got}")
    print(f"{total} readers had an answer, {back} of them one from the past")
    if not total:
        return 2
    return 0 if back else 1


def main():
    try:
        if sys.argv[1:2] == ["ready"] and len(sys.argv) == 3:
            return ready(sys.argv[2])
        if sys.argv[1:] == ["work"]:
            return Work().run()
        if sys.argv[1:] == ["back-in-time"]:
            return back_in_time()
    except (OSError, KeyError, ValueError) as error:
        # Never 0 or 1 by accident: those are verdicts when asked for what went back.
        print(f"client.py: {error!r}", file=sys.stderr)
        return 2
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
