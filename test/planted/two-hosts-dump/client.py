"""What speaks to the hosts from outside."""
import socket
import time


class Client:
    def __init__(self, address):
        self.socket = socket.create_connection((address, 7000), timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines = self.socket.makefile("r", encoding="ascii")

    def ask(self, request):
        self.socket.sendall((request + "\n").encode())
        line = self.lines.readline()
        if not line.endswith("\n"):
            raise ConnectionError("the host is gone")
        return line.split()

    def list(self):
        """Position and bookings."""
        position, count = map(int, self.ask("list"))
        return position, [self.lines.readline().strip() for _ in range(count)]


def patiently(seconds, action):
    """Its result; tried again while a host is away or the result is None."""
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
