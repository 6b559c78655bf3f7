"""A client of recdb. A value is made of its key, version and size, so that it can be recognised."""
import hashlib
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../common"))
from client import Patient

PIECE = 16384
UPLINK = 0.004  # a large value is sent in pieces, with this many seconds between two of them


def value_of(key, version, size):
    seed = hashlib.sha256(f"{key}/{version}".encode()).digest()
    head = f"{key}/{version}/".encode()
    return head + random.Random(seed).randbytes(size - len(head))


class Recdb(Patient):
    def put(self, key, value):
        self.send(f"put {key} {len(value)}\n".encode())
        for at in range(0, len(value), PIECE):
            if at > 0:
                time.sleep(UPLINK)
            self.send(value[at:at + PIECE])
        if self.receive_line() != "ok":
            raise ConnectionError("not stored")

    def get(self, key):
        self.send(f"get {key}\n".encode())
        line = self.receive_line()
        return None if line == "none" else self.receive(int(line))
