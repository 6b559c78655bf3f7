"""As much of the NATS protocol as this example needs: requests over one connection."""
import json
import os
import socket
import time

SERVERS = [os.environ["ROSE_IP_" + node] for node in os.environ["ROSE_NODES"].split()]


class Nats:
    def __init__(self, ip, timeout=2.0):
        self.socket = socket.create_connection((ip, 4222), timeout)
        self.socket.settimeout(timeout)
        self.stream = self.socket.makefile("rb")
        self.stream.readline()  # INFO
        self.inbox = "_INBOX.%d.%d" % (os.getpid(), time.monotonic_ns())
        self.asked = 0
        self.send(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB %s.* 1\r\n' % self.inbox.encode())

    def send(self, data):
        self.socket.sendall(data)

    def close(self):
        self.stream.close()
        self.socket.close()

    def ask(self, subject, payload=b""):
        """The answer as JSON; None if nobody serves the subject. Raises OSError without an answer."""
        self.asked += 1
        reply = "%s.%d" % (self.inbox, self.asked)
        self.send(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), reply.encode(), len(payload), payload))
        while True:
            line = self.stream.readline()
            if not line:
                raise OSError("the connection is closed")
            words = line.split()
            if words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words[0] in (b"MSG", b"HMSG"):
                body = self.stream.read(int(words[-1]) + 2)[:-2]
                if words[1].decode() != reply:
                    continue
                if words[0] == b"HMSG":
                    body = body[int(words[-2]):]  # "503 No Responders" has a header alone
                return json.loads(body) if body else None


def anywhere(subject, payload=b"", seconds=20.0, good=lambda answer: answer is not None and "error" not in answer):
    """Asks one server after the other until one gives a good answer; None if none did."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for ip in SERVERS:
            try:
                connection = Nats(ip)
                try:
                    answer = connection.ask(subject, payload)
                finally:
                    connection.close()
            except (OSError, ValueError, IndexError):
                continue
            if good(answer):
                return answer
        time.sleep(0.2)
    return None
