"""The part of ZooKeeper's client protocol that the examples in this folder need. Uses only the standard library."""
import os
import socket
import struct
import sys
import time

SERVERS = [os.environ["ROSE_IP_" + node] for node in os.environ["ROSE_NODES"].split()]
CREATE, CHILDREN, CLOSE = 1, 8, -11
NODE_EXISTS = -110


def four_letters(ip, word, timeout=2.0):
    """The answer to ruok, srvr, ...; empty if there is none."""
    answer = b""
    try:
        with socket.create_connection((ip, 2181), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(word.encode())
            while chunk := connection.recv(4096):
                answer += chunk
    except OSError:
        pass
    return answer.decode(errors="replace")


def mode(ip):
    """leader, follower, or empty if the server does not serve."""
    for line in four_letters(ip, "srvr").splitlines():
        if line.startswith("Mode: "):
            return line[6:]
    return ""


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.2)
    return True


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(data)) + data


class Session:
    """A client session with one server. Its methods raise OSError when the server does not answer in time."""

    def __init__(self, ip, timeout=3.0):
        self.xid = 0
        self.socket = socket.create_connection((ip, 2181), timeout)
        self.socket.settimeout(timeout)
        self.send(struct.pack(">iqiq", 0, 0, 10000, 0) + text(bytes(16)))
        _, timeout_ms, _ = struct.unpack(">iiq", self.receive()[:16])
        if timeout_ms <= 0:
            raise OSError("the session was refused")

    def close(self):
        self.socket.close()

    def send(self, body):
        self.socket.sendall(struct.pack(">i", len(body)) + body)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise OSError("the connection is closed")
            data += chunk
        return data

    def receive(self):
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def ask(self, kind, body=b""):
        self.xid += 1
        self.send(struct.pack(">ii", self.xid, kind) + body)
        while True:
            answer = self.receive()
            xid, _, error = struct.unpack(">iqi", answer[:16])
            if xid == self.xid:
                return error, answer[16:]

    def create(self, path, data=b""):
        """Creates the znode; True if it then exists."""
        acl = struct.pack(">ii", 1, 31) + text("world") + text("anyone")
        error, _ = self.ask(CREATE, text(path) + text(data) + acl + struct.pack(">i", 0))
        return error in (0, NODE_EXISTS)

    def children(self, path):
        error, answer = self.ask(CHILDREN, text(path) + b"\0")
        if error != 0:
            raise OSError("getChildren failed with %d" % error)
        names = []
        count, at = struct.unpack(">i", answer[:4])[0], 4
        for _ in range(count):
            size = struct.unpack(">i", answer[at:at + 4])[0]
            names.append(answer[at + 4:at + 4 + size].decode())
            at += 4 + size
        return names


def create_anywhere(path, data=b"", seconds=10.0, servers=None):
    """Creates the znode through one server after the other, until one succeeds; False if none does."""
    deadline = time.monotonic() + seconds
    while True:
        for ip in servers or SERVERS:
            try:
                session = Session(ip)
                try:
                    if session.create(path, data):
                        session.ask(CLOSE)
                        return True
                finally:
                    session.close()
            except (OSError, struct.error):
                pass
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.2)


def exit_by_acknowledged(path, seconds):
    """An oracle: does a server serve clients without znodes below `path` that acked.txt lists as acknowledged? 0 yes,
    1 no, 2 cannot decide."""
    with open("acked.txt") as file:
        acked = {line.strip() for line in file}

    def missing(node):
        """The acknowledged znodes that this server does not have; None if it does not serve."""
        try:
            session = Session(os.environ["ROSE_IP_" + node])
            try:
                return acked - set(session.children(path))
            finally:
                session.close()
        except (OSError, struct.error):
            return None

    # A follower may be behind, but not for long.
    found = {}

    def all_have_all():
        found.update((node, missing(node)) for node in os.environ["ROSE_NODES"].split())
        return all(lacks is not None and not lacks for lacks in found.values())

    wait_until(all_have_all, seconds)
    whole = [node for node, lacks in found.items() if lacks is not None and not lacks]
    lossy = [node for node, lacks in found.items() if lacks]
    away = [node for node, lacks in found.items() if lacks is None]
    for node in lossy:
        print("%s serves, and lacks %d of %d acknowledged znodes" % (node, len(found[node]), len(acked)))
    print("have all: %s; do not serve: %s" % (" ".join(whole) or "none", " ".join(away) or "none"))
    sys.exit(0 if lossy else 1 if len(whole) >= 2 else 2)
