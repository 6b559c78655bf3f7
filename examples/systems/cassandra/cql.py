"""The part of CQL's native protocol (v4) that the workload and the oracle need. Uses only Python's standard library.
Raises OSError if a node does not answer, or refuses."""
import os
import socket
import struct
import time

NODES = os.environ["ROSE_NODES"].split()
ONE, QUORUM = 1, 4
ERROR, STARTUP, READY, QUERY, RESULT = 0, 1, 2, 7, 8


class Session:
    def __init__(self, node, timeout=4.0):
        self.socket = socket.create_connection((os.environ["ROSE_IP_" + node], 9042), timeout)
        self.socket.settimeout(timeout)
        try:
            self.ask(STARTUP, struct.pack(">HH11sH5s", 1, 11, b"CQL_VERSION", 5, b"3.0.0"), READY)
        except OSError:
            self.close()
            raise

    def close(self):
        self.socket.close()

    def read(self, size):
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise OSError("the connection is closed")
            data += chunk
        return data

    def ask(self, operation, body, expected):
        """The body of the answer."""
        self.socket.sendall(struct.pack(">BBhBi", 4, 0, 0, operation, len(body)) + body)
        _, flags, _, kind, size = struct.unpack(">BBhBi", self.read(9))
        body = self.read(size)
        if flags & 8:   # warnings come first
            at = 2
            for _ in range(struct.unpack_from(">H", body)[0]):
                at += 2 + struct.unpack_from(">H", body, at)[0]
            body = body[at:]
        if kind == ERROR:
            raise OSError(body[6:6 + struct.unpack_from(">H", body, 4)[0]].decode(errors="replace"))
        if kind != expected:
            raise OSError("an answer of kind %d" % kind)
        return body

    def query(self, text, consistency=ONE):
        """The rows of the answer, each a list of bytes, without the columns' names and types."""
        text = text.encode()
        body = self.ask(QUERY, struct.pack(">i%dsHB" % len(text), len(text), text, consistency, 2), RESULT)
        kind, _, columns, count = struct.unpack_from(">iiii", body.ljust(16, b"\0"))
        if kind != 2:
            return []
        at, cells = 16, []
        for _ in range(columns * count):
            size = struct.unpack_from(">i", body, at)[0]
            at += 4
            cells.append(body[at:at + size] if size >= 0 else None)
            at += max(size, 0)
        return [cells[row * columns:(row + 1) * columns] for row in range(count)]


def query(node, text, consistency=ONE):
    session = Session(node)
    try:
        return session.query(text, consistency)
    finally:
        session.close()


def joined():
    """Do all nodes know all others, and the same tables?"""
    for node in NODES:
        versions = [row[0] for table in ("local", "peers")
                    for row in query(node, "SELECT schema_version FROM system." + table)]
        if len(versions) != len(NODES) or len(set(versions)) != 1:
            return False
    return True


def wait_until(condition, seconds):
    """Waits until the condition holds and returns ""; after `seconds`, returns the last problem. The condition may
    raise OSError meanwhile."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return ""
            state = "not yet"
        except (OSError, struct.error) as error:
            state = str(error) or repr(error)
        if time.monotonic() >= deadline:
            return state
        time.sleep(0.3)
