"""What speaks to the nodes from outside."""
import os
import socket
import time


class Client:
    def __init__(self, node):
        self.socket = socket.create_connection((os.environ[f"ROSE_IP_{node}"], 7000), timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines = self.socket.makefile("r", encoding="ascii")

    def ask(self, request):
        self.socket.sendall((request + "\n").encode())
        line = self.lines.readline()
        if not line.endswith("\n"):
            raise ConnectionError("the node is gone")
        return line.split()

    def put(self, key, value):
        return int(self.ask(f"put {key} {value}")[1])

    def dump(self):
        """Position and keys."""
        position, count = map(int, self.ask("dump"))
        return position, dict(self.lines.readline().split() for _ in range(count))


def patiently(seconds, action):
    """Its result; tried again while a node is away or the result is None."""
    give_up = time.monotonic() + seconds
    while True:
        try:
            result = action()
            if result is not None:
                return result
        except (OSError, ValueError):
            pass
        if time.monotonic() > give_up:
            return None
        time.sleep(0.1)
