"""Of the NATS protocol what a client of JetStream needs, on the standard library alone."""
import json
import os
import socket


class Nats:
    def __init__(self, ip, port=4222, timeout=5.0):
        self.socket = socket.create_connection((ip, port), timeout=timeout)
        self.file = self.socket.makefile("rb")
        self.inbox = f"_INBOX.{os.getpid()}.{id(self)}"
        self.asked = 0
        if not self.file.readline().startswith(b"INFO "):
            raise ConnectionError("this is no NATS server")
        self.socket.sendall(f'CONNECT {{"verbose":false,"headers":true,"no_responders":true}}\r\n'
                            f"SUB {self.inbox}.* 1\r\n".encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def ask(self, subject, payload=b""):
        """One request, its answer as an object; {} when nobody answers to that subject."""
        self.asked += 1
        reply = f"{self.inbox}.{self.asked}"
        self.socket.sendall(f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n")
        while True:
            words = self.file.readline().split()
            if not words:
                raise ConnectionError("the connection ended")
            if words[0] == b"PING":
                self.socket.sendall(b"PONG\r\n")
            elif words[0] == b"-ERR":
                raise ConnectionError(b" ".join(words).decode())
            elif words[0] in (b"MSG", b"HMSG"):
                body = self.file.read(int(words[-1]) + 2)[:-2]
                if words[1].decode() != reply:
                    continue   # the late answer to a request that was given up
                if words[0] == b"HMSG":
                    body = body[int(words[-2]):]
                return json.loads(body) if body else {}

    def create_stream(self, name):
        """The server's error as text, "" when it was created."""
        config = {"name": name, "subjects": [f"{name}.>"], "retention": "limits", "storage": "file",
                  "num_replicas": 1, "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0}
        answer = self.ask(f"$JS.API.STREAM.CREATE.{name}", json.dumps(config).encode())
        return "" if "config" in answer else str(answer.get("error", {}).get("description", "no answer"))

    def publish(self, subject, payload):
        """Has the stream acknowledged it?"""
        return "seq" in self.ask(subject, payload)

    def stream_info(self, name):
        return self.ask(f"$JS.API.STREAM.INFO.{name}")
