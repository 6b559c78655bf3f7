"""As much of Kafka's protocol as workload and oracle need; python's library alone. Raises OSError when the broker does not answer, or with an error."""
import os
import socket
import struct
import time
import zlib

TOPIC = b"orders"
PRODUCE, LIST_OFFSETS, CREATE_TOPICS = 0, 2, 19
TOPIC_EXISTS = 36
FIRST, END = -2, -1


def ask(key, version, body, timeout):
    """The body of the answer, behind its correlation id."""
    client = b"rose"
    request = struct.pack(">hhih", key, version, 1, len(client)) + client + body
    with socket.create_connection((os.environ["ROSE_IP_broker"], 9092), timeout) as connection:
        connection.settimeout(timeout)
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
            chunk = connection.recv(65536)
            if not chunk:
                raise OSError("the connection is closed")
            answer += chunk
    return answer[8:]


def named(text):
    return struct.pack(">h", len(text)) + text


def checked(error):
    if error != 0:
        raise OSError("error %d" % error)


def create(timeout=5.0):
    """One partition, one copy."""
    answer = ask(CREATE_TOPICS, 0, struct.pack(">i", 1) + named(TOPIC) + struct.pack(">ihiii", 1, 1, 0, 0, int(timeout * 1000)), timeout + 1)
    error = struct.unpack_from(">h", answer, 4 + 2 + len(TOPIC))[0]
    checked(0 if error == TOPIC_EXISTS else error)


def produce(value, timeout=2.0):
    """The record's offset, once the broker has acknowledged it."""
    message = struct.pack(">bbqii", 1, 0, int(time.time() * 1000), -1, len(value)) + value
    message = struct.pack(">I", zlib.crc32(message)) + message
    records = struct.pack(">qi", 0, len(message)) + message
    body = struct.pack(">hii", -1, int(timeout * 1000), 1) + named(TOPIC) + struct.pack(">iii", 1, 0, len(records)) + records
    answer = ask(PRODUCE, 2, body, timeout)
    _, error, offset = struct.unpack_from(">ihq", answer, 4 + 2 + len(TOPIC) + 4)
    checked(error)
    return offset


def offset_of(which, timeout=4.0):
    """FIRST: of the first record that is there; END: what the next one will have."""
    body = struct.pack(">ii", -1, 1) + named(TOPIC) + struct.pack(">iiq", 1, 0, which)
    answer = ask(LIST_OFFSETS, 1, body, timeout)
    _, error, _, offset = struct.unpack_from(">ihqq", answer, 4 + 2 + len(TOPIC) + 4)
    checked(error)
    return offset


def wait_until(condition, seconds):
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
