"""The part of MQTT 3.1.1 that these clients need. Uses only Python's standard library."""
import os
import socket
import struct


def text(words):
    data = words.encode()
    return struct.pack("!H", len(data)) + data


class Mqtt:
    def __init__(self, name, port=1883, timeout=3.0):
        self.socket = socket.create_connection((os.environ["ROSE_IP_broker"], port), timeout=timeout)
        self.file = self.socket.makefile("rb")
        self.packets = 0
        self.send(0x10, text("MQTT") + bytes([4, 2]) + struct.pack("!H", 60) + text(name))
        kind, body = self.receive()
        if kind != 0x20 or body[1] != 0:
            raise ConnectionError("the broker refuses")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, kind, body):
        length = len(body)
        head = [kind]
        while True:
            head.append(length % 128 | (128 if length > 127 else 0))
            length //= 128
            if not length:
                break
        self.socket.sendall(bytes(head) + body)

    def receive(self):
        head = self.file.read(1)
        if not head:
            raise ConnectionError("the connection ended")
        length = shift = 0
        while True:
            byte = self.file.read(1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return head[0], self.file.read(length)

    def publish_retained(self, topic, payload):
        """Returns when the broker has acknowledged the message."""
        self.packets += 1
        self.send(0x33, text(topic) + struct.pack("!H", self.packets) + payload)
        while self.receive()[0] != 0x40:
            pass

    def retained(self, topics):
        """The topics that have a retained message."""
        self.packets += 1
        self.send(0x82, struct.pack("!H", self.packets) + text(topics) + b"\0")
        self.send(0xC0, b"")   # the answer follows all retained messages
        found = set()
        while True:
            kind, body = self.receive()
            if kind & 0xF0 == 0x30:
                length = struct.unpack("!H", body[:2])[0]
                found.add(body[2:2 + length].decode())
            elif kind == 0xD0:
                return found
