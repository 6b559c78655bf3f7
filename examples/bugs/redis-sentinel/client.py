#!/usr/bin/env python3
"""The clients of the cluster: the workload and the oracle. Needs only the standard library.

  client.py ready IP   exit 0 when the Sentinel at IP knows both replicas and both other Sentinels
  client.py write      the workload: numbered writes to the first primary; acked.txt lists the acknowledged ones
  client.py lost       the oracle: exit 0 when acknowledged writes are missing on the primary that all
                       Sentinels agree on, 1 when none is, 2 when it can't tell
"""
import os
import socket
import sys
import time

WRITE_SECONDS = 13
AGREE_SECONDS = 20


class RedisError(Exception):
    """The server answered with an error."""


class Connection:
    def __init__(self, ip, port, timeout=3.0):
        self.socket = socket.create_connection((ip, port), timeout=timeout)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word.encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        self.socket.sendall(b"".join(parts))

    def receive(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the connection ended")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if int(rest) < 0:
                return None
            return self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.receive() for _ in range(max(0, int(rest)))]
        raise ConnectionError(f"unexpected answer {line!r}")

    def ask(self, *words):
        self.send(*words)
        return self.receive()


def addresses():
    return [os.environ["ROSE_IP_" + name.replace("-", "_")] for name in os.environ["ROSE_NODES"].split()]


def ready(ip):
    with Connection(ip, 26379) as sentinel:
        answer = sentinel.ask("SENTINEL", "MASTER", "cache")
    state = dict(zip(answer[::2], answer[1::2]))
    good = state["flags"] == "master" and state["num-slaves"] == "2" and state["num-other-sentinels"] == "2"
    return 0 if good else 1


def write():
    """Writes until the time is over, or until the server is no longer a primary."""
    end = time.monotonic() + WRITE_SECONDS
    number = acknowledged = 0
    with open("acked.txt", "a", buffering=1) as acked, Connection(addresses()[0], 6379) as primary:
        while time.monotonic() < end:
            number += 1
            try:
                primary.ask("SET", f"key:{number}", str(number))
            except (RedisError, OSError) as error:
                print(f"write {number} was refused: {error}")
                break
            acked.write(f"key:{number}\n")
            acknowledged += 1
            time.sleep(0.02)
    print(f"{acknowledged} of {number} writes acknowledged")
    return 0 if acknowledged else 1


def agreed_primary():
    """The address that all Sentinels name, if the server there claims to be the primary; otherwise None."""
    names = set()
    try:
        for ip in addresses():
            with Connection(ip, 26379) as sentinel:
                names.add(tuple(sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "cache")))
        if len(names) != 1:
            return None
        ip, port = names.pop()
        with Connection(ip, int(port)) as server:
            return (ip, int(port)) if server.ask("ROLE")[0] == "master" else None
    except (RedisError, OSError) as error:
        print(f"not yet: {error}")
        return None


def lost():
    try:
        with open("acked.txt") as acked:
            keys = acked.read().split()
    except OSError as error:
        print(error)
        return 2
    if not keys:
        print("no write was acknowledged")
        return 2

    end = time.monotonic() + AGREE_SECONDS
    primary = agreed_primary()
    while primary is None and time.monotonic() < end:
        time.sleep(0.3)
        primary = agreed_primary()
    if primary is None:
        print("the Sentinels do not agree on a primary")
        return 2

    missing = []
    with Connection(*primary) as server:
        for at in range(0, len(keys), 500):
            part = keys[at:at + 500]
            missing += [key for key, value in zip(part, server.ask("MGET", *part)) if value is None]
    print(f"primary {primary[0]}: {len(keys)} writes acknowledged, {len(missing)} of them missing")
    return 0 if missing else 1


def main():
    try:
        if sys.argv[1:2] == ["ready"] and len(sys.argv) == 3:
            return ready(sys.argv[2])
        if sys.argv[1:] == ["write"]:
            return write()
        if sys.argv[1:] == ["lost"]:
            return lost()
    except (RedisError, OSError, KeyError) as error:
        # Never return 0 or 1 by accident: for the command `lost` they are verdicts.
        print(f"client.py: {error!r}", file=sys.stderr)
        return 2
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
