"""What speaks to the spool from outside."""
import json
import os
import socket
import time


class Client:
    def __init__(self, patience):
        self.address = (os.environ["ROSE_IP_spool"], 7000)
        self.give_up = time.monotonic() + patience
        self.connection = None
        self.stream = None

    def ask(self, **request):
        """The answer; while the server is away, once more. (All requests may be repeated.)"""
        while True:
            try:
                if self.connection is None:
                    self.connection = socket.create_connection(self.address, timeout=2)
                    self.connection.settimeout(10)
                    self.stream = self.connection.makefile("rw", encoding="utf-8")
                self.stream.write(json.dumps(request) + "\n")
                self.stream.flush()
                answer = self.stream.readline()
                if not answer.endswith("\n"):
                    raise ConnectionError("the server is gone")
                return json.loads(answer)
            except OSError:
                if self.connection is not None:
                    self.connection.close()
                self.connection = None
                if time.monotonic() > self.give_up:
                    raise
                time.sleep(0.05)
