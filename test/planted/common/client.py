"""A line-based TCP client of the planted programs, shared by workloads and oracles."""
import os
import socket
import time

NODES = os.environ.get("ROSE_NODES", "").split()


def ip_of(node):
    return os.environ["ROSE_IP_" + node.replace("-", "_")]


class Client:
    """A connection that is reopened when it breaks. ask() returns None if there was no answer in time."""

    def __init__(self, node, port=7000, timeout=0.5):
        self.address = (ip_of(node), port)
        self.timeout = timeout
        self.connection = None
        self.stream = None

    def close(self):
        if self.stream:
            self.stream.close()
        if self.connection:
            self.connection.close()
        self.stream = self.connection = None

    def leave(self):
        """Closes the connection and returns once the server has closed its end, or after the timeout."""
        if self.stream is None:
            return
        try:
            self.connection.shutdown(socket.SHUT_WR)
            while self.connection.recv(4096):
                pass
        except OSError:
            pass
        self.close()

    def ask(self, line):
        try:
            if self.stream is None:
                self.connection = socket.create_connection(self.address, self.timeout)
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.stream = self.connection.makefile("rw", newline="\n")
            self.stream.write(line + "\n")
            self.stream.flush()
            reply = self.stream.readline()
            if reply.endswith("\n"):
                return reply.rstrip("\n")
        except (OSError, ValueError):
            pass
        self.close()
        return None

    def ask_list(self, line):
        """Reads an answer of "POSITION COUNT" and COUNT lines; returns the position and the lines, or None."""
        try:
            position, count = map(int, (self.ask(line) or "").split())
            lines = [self.stream.readline() for _ in range(count)]
            if all(one.endswith("\n") for one in lines):
                return position, [one.rstrip("\n") for one in lines]
        except (OSError, ValueError):
            pass
        self.close()
        return None

    def insist(self, line, seconds=10.0):
        """Repeats the request until there is an answer."""
        return until(lambda: self.ask(line), seconds)


class Patient:
    """A connection to a server that may be down for a while, killed and restarted."""

    def __init__(self, node, patience):
        self.address = (ip_of(node), 7000)
        self.give_up = time.monotonic() + patience
        self.connection = None
        self.stream = None

    def tried(self, exchange):
        """Returns the result of the request, which is repeated while the server is down."""
        while True:
            try:
                if self.connection is None:
                    self.connection = socket.create_connection(self.address, timeout=2)
                    self.connection.settimeout(10)
                    self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.stream = self.connection.makefile("rb")
                return exchange()
            except OSError:
                if self.connection is not None:
                    self.connection.close()
                self.connection = None
                if time.monotonic() > self.give_up:
                    raise
                time.sleep(0.05)

    # For use within an exchange.

    def send(self, data):
        self.connection.sendall(data)

    def receive(self, size):
        data = self.stream.read(size)
        if len(data) < size:
            raise ConnectionError("the server is gone")
        return data

    def receive_line(self):
        line = self.stream.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the server is gone")
        return line[:-1].decode()


def until(action, seconds):
    """Repeats the action until it returns a value, and returns that; None after the time limit."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = action()
        if result is not None:
            return result
        time.sleep(0.02)
    return None


def node(action, name):
    """Runs rose node stop|start|restart|kill NAME."""
    # imported only here, because most workloads and oracles do not need it, and each run starts several of them
    import subprocess
    subprocess.run([os.environ["ROSE_EXE"], "node", action, name, "--quiet"], check=True)


def cannot_tell(why):
    print(why)
    raise SystemExit(2)


def verdict(bug, words):
    """Prints the words and exits: with 0 if the bug occurred, otherwise with 1 (as grep does)."""
    print(words)
    raise SystemExit(0 if bug else 1)
