"""The part of STOMP that the workload and the oracle need. Uses only Python's standard library. Raises OSError if the
broker does not answer, or refuses."""
import os
import socket
import time

NODES = os.environ["ROSE_NODES"].split()


class Session:
    def __init__(self, node, timeout=4.0):
        self.data = b""
        self.socket = socket.create_connection((os.environ["ROSE_IP_" + node], 61613), timeout)
        self.socket.settimeout(timeout)
        try:
            self.send("CONNECT", {"accept-version": "1.2", "host": "orders"})
            if self.receive()[0] != "CONNECTED":
                raise OSError("the session was refused")
        except OSError:
            self.close()
            raise

    def close(self):
        self.socket.close()

    def send(self, command, headers, body=""):
        lines = [command] + ["%s:%s" % pair for pair in headers.items()]
        self.socket.sendall(("\n".join(lines) + "\n\n" + body + "\0").encode())

    def receive(self):
        """A frame: its command, headers and body."""
        while b"\0" not in self.data:
            chunk = self.socket.recv(65536)
            if not chunk:
                raise OSError("the connection is closed")
            self.data += chunk
        frame, _, self.data = self.data.partition(b"\0")
        head, _, body = frame.decode(errors="replace").lstrip("\n").replace("\r\n", "\n").partition("\n\n")
        command, *headers = head.split("\n")
        if command == "ERROR":
            raise OSError(head)
        return command, dict(line.partition(":")[::2] for line in headers), body

    def put(self, queue, body):
        """Returns when the broker has stored the message durably."""
        self.send("SEND", {"destination": queue, "destination-type": "ANYCAST", "persistent": "true", "receipt": body},
                  body)
        while True:
            command, headers, _ = self.receive()
            if command == "RECEIPT" and headers.get("receipt-id") == body:
                return

    def bodies(self, queue, quiet=3.0):
        """The bodies of all messages in the queue. The messages stay in the queue."""
        found = []
        self.send("SUBSCRIBE", {"id": "0", "destination": queue, "subscription-type": "ANYCAST",
                                "ack": "client-individual", "consumer-window-size": "-1"})
        self.socket.settimeout(quiet)
        try:
            while True:
                command, _, body = self.receive()
                if command == "MESSAGE":
                    found.append(body)
        except socket.timeout:
            return found


def anywhere(seconds):
    """A session with the broker that serves, or None."""
    deadline = time.monotonic() + seconds
    while True:
        for node in NODES:
            try:
                return Session(node)
            except OSError:
                pass
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.2)
