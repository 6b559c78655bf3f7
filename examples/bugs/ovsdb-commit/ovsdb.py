"""A client of the database: the protocol of RFC 7047. Uses only Python's standard library."""
import json
import os
import socket


class Refused(Exception):
    """The server answered with an error."""


class Ovsdb:
    def __init__(self, ip, timeout=3.0):
        self.socket = socket.create_connection((ip, 6640), timeout=timeout)
        self.number = 0
        self.rest = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode())

    def receive(self):
        while True:
            try:
                message, end = json.JSONDecoder().raw_decode(self.rest)
                self.rest = self.rest[end:].lstrip()
                return message
            except ValueError:
                part = self.socket.recv(65536).decode()
                if not part:
                    raise ConnectionError("the connection ended") from None
                self.rest += part

    def transact(self, operation):
        """The result of one operation."""
        self.number += 1
        self.send({"method": "transact", "params": ["inventory", operation], "id": self.number})
        while True:
            message = self.receive()
            if message.get("method") == "echo":  # the server checks whether the client is alive
                self.send({"id": message["id"], "result": message["params"], "error": None})
            elif message.get("id") == self.number:
                break
        for result in message.get("result") or [{"error": message.get("error")}]:
            if result and "error" in result:
                raise Refused(result)
        return message["result"][0]

    def insert(self, name):
        self.transact({"op": "insert", "table": "item", "row": {"name": name}})

    def names(self):
        rows = self.transact({"op": "select", "table": "item", "where": [], "columns": ["name"]})["rows"]
        return {row["name"] for row in rows}


def addresses():
    return [os.environ["ROSE_IP_" + node] for node in os.environ["ROSE_NODES"].split()]
