"""Asks the planted programs, line by line over TCP; what workloads and oracles share."""
import os
import socket
import subprocess
import time

NODES = os.environ.get("ROSE_NODES", "").split()


def ip_of(node):
    return os.environ["ROSE_IP_" + node.replace("-", "_")]


class Client:
    """One connection, made again when it breaks. ask() returns None when there was no answer in time."""

    def __init__(self, node, port=7000, timeout=0.5):
        self.address = (ip_of(node), port)
        self.timeout = timeout
        self.stream = None

    def close(self):
        if self.stream:
            self.stream.close()
        self.stream = None

    def ask(self, line):
        try:
            if self.stream is None:
                connection = socket.create_connection(self.address, self.timeout)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.stream = connection.makefile("rw", newline="\n")
                connection.close()  # the stream keeps it open
            self.stream.write(line + "\n")
            self.stream.flush()
            reply = self.stream.readline()
            if reply.endswith("\n"):
                return reply.rstrip("\n")
        except (OSError, ValueError):
            pass
        self.close()
        return None

    def insist(self, line, seconds=10.0):
        """Asks until there is an answer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            reply = self.ask(line)
            if reply is not None:
                return reply
            time.sleep(0.02)
        return None


def node(action, name):
    """rose node stop|start|restart|kill NAME"""
    subprocess.run([os.environ["ROSE_EXE"], "node", action, name, "--quiet"], check=True)


def cannot_tell(why):
    print(why)
    raise SystemExit(2)


def verdict(bug, words):
    """Speaks like grep."""
    print(words)
    raise SystemExit(0 if bug else 1)
