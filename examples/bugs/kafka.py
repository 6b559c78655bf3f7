"""The part of Kafka's protocol that workloads and oracles need. Uses only Python's standard library. Raises OSError if
there is no answer, or if the answer is an error."""
import os
import socket
import struct
import time
import zlib

PRODUCE, LIST_OFFSETS, CREATE_TOPICS, DESCRIBE_QUORUM = 0, 2, 19, 55
TOPIC_EXISTS = 36
FIRST, END = -2, -1


def ask(node, port, key, version, body, timeout, header_end=b""):
    """The part of the answer after its correlation id."""
    client = b"rose"
    request = struct.pack(">hhih", key, version, 1, len(client)) + client + header_end + body
    with socket.create_connection((os.environ["ROSE_IP_" + node], port), timeout) as connection:
        connection.settimeout(timeout)
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
            chunk = connection.recv(65536)
            if not chunk:
                raise OSError("%s closed the connection" % node)
            answer += chunk
    return answer[8:]


def named(text):
    return struct.pack(">h", len(text)) + text.encode()


def checked(error):
    if error != 0:
        raise OSError("error %d" % error)


def create_topic(broker, name, seconds):
    """Creates the topic with one partition and one replica. The broker forwards this to the controller that it takes
    for the leader."""
    body = (struct.pack(">i", 1) + named(name) + struct.pack(">ihii", 1, 1, 0, 0)
            + struct.pack(">ib", int(seconds * 1000), 0))
    answer = ask(broker, 9092, CREATE_TOPICS, 2, body, seconds + 1)
    # throttle time, number of topics, name, error
    error = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name))[0]
    checked(0 if error == TOPIC_EXISTS else error)


def produce(broker, topic, value, timeout=2.0):
    """The record's offset, once the broker has acknowledged it."""
    message = struct.pack(">bbqii", 1, 0, int(time.time() * 1000), -1, len(value)) + value
    message = struct.pack(">I", zlib.crc32(message)) + message
    records = struct.pack(">qi", 0, len(message)) + message
    body = (struct.pack(">hii", -1, int(timeout * 1000), 1) + named(topic)
            + struct.pack(">iii", 1, 0, len(records)) + records)
    answer = ask(broker, 9092, PRODUCE, 2, body, timeout)
    _, error, offset = struct.unpack_from(">ihq", answer, 4 + 2 + len(topic) + 4)
    checked(error)
    return offset


def offset_of(broker, topic, which, timeout=4.0):
    """With FIRST: the offset of the first record that exists; with END: the offset that the next record will get."""
    body = struct.pack(">ii", -1, 1) + named(topic) + struct.pack(">iiq", 1, 0, which)
    answer = ask(broker, 9092, LIST_OFFSETS, 1, body, timeout)
    _, error, _, offset = struct.unpack_from(">ihqq", answer, 4 + 2 + len(topic) + 4)
    checked(error)
    return offset


def leads(controller, timeout=1.0):
    """Does this controller claim to lead the others? Only a leader answers this request without an error."""
    topic = b"__cluster_metadata"
    # The request asks for one topic with one partition. Of the zeros, the first four bytes are the partition's number,
    # and the last three say that the partition, the topic and the request have no tagged fields.
    body = bytes([2, len(topic) + 1]) + topic + bytes([2, 0, 0, 0, 0, 0, 0, 0])
    try:
        answer = ask(controller, 9093, DESCRIBE_QUORUM, 0, body, timeout, header_end=b"\0")
    except OSError:
        return False
    # tags, error, number of topics, name, number of partitions, partition, error
    at = 1
    if struct.unpack_from(">h", answer, at)[0] != 0:
        return False
    at += 2 + 1 + 1 + len(topic) + 1 + 4
    return struct.unpack_from(">h", answer, at)[0] == 0


def patiently(condition, seconds):
    """Calls `condition` until it neither raises OSError nor returns False. Returns whether that happened in time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition() is not False:
                return True
        except OSError as error:
            reason = error
        else:
            reason = "not yet"
        if time.monotonic() >= deadline:
            print("gave up after %d seconds: %s" % (seconds, reason), flush=True)
            return False
        time.sleep(0.2)
