"""The part of the NATS protocol that the examples in this folder need: requests over one connection. Uses only Python's
standard library."""
import json
import os
import socket
import time

SERVERS = [os.environ["ROSE_IP_" + node] for node in os.environ["ROSE_NODES"].split()]


class Nats:
    def __init__(self, ip, timeout=5.0):
        self.socket = socket.create_connection((ip, 4222), timeout)
        self.stream = self.socket.makefile("rb")
        self.inbox = "_INBOX.%d.%d" % (os.getpid(), time.monotonic_ns())
        self.asked = 0
        if not self.stream.readline().startswith(b"INFO "):
            raise ConnectionError("this is no NATS server")
        self.send(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB %s.* 1\r\n'
                  % self.inbox.encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, subject, payload=b""):
        """The answer as an object; {} if no server serves the subject. Raises OSError if there is no answer."""
        self.asked += 1
        reply = "%s.%d" % (self.inbox, self.asked)
        self.send(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), reply.encode(), len(payload), payload))
        while True:
            words = self.stream.readline().split()
            if not words:
                raise ConnectionError("the connection is closed")
            if words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words[0] == b"-ERR":
                raise ConnectionError(b" ".join(words).decode())
            elif words[0] in (b"MSG", b"HMSG"):
                body = self.stream.read(int(words[-1]) + 2)[:-2]
                if words[1].decode() != reply:
                    continue  # the late answer to an abandoned request
                if words[0] == b"HMSG":
                    body = body[int(words[-2]):]  # "503 No Responders" has only a header
                return json.loads(body) if body else {}


def anywhere(subject, payload=b"", seconds=20.0):
    """Asks one server after the other until one answers without an error; None if none does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for ip in SERVERS:
            try:
                with Nats(ip, 2.0) as connection:
                    answer = connection.ask(subject, payload)
            except (OSError, ValueError, IndexError):
                continue
            if answer and "error" not in answer:
                return answer
        time.sleep(0.2)
    return None
