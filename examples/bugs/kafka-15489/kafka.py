"""As much of Kafka's protocol as workload and oracle need; python's library alone. Raises OSError when nobody answers, or with an error."""
import os
import socket
import struct

CONTROLLERS = [node for node in os.environ["ROSE_NODES"].split() if node.startswith("c")]
BROKER = "b4"
CREATE_TOPICS, DESCRIBE_QUORUM = 19, 55
TOPIC_EXISTS = 36


def ask(node, port, key, version, header_end, body, timeout):
    """The body of the answer, behind its correlation id."""
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


def create_topic(name, seconds):
    """One partition, one copy. Asks the broker, which passes it on to the controller that it takes for the leader."""
    text = name.encode()
    body = struct.pack(">ih", 1, len(text)) + text + struct.pack(">ihii", 1, 1, 0, 0) + struct.pack(">ib", int(seconds * 1000), 0)
    answer = ask(BROKER, 9092, CREATE_TOPICS, 2, b"", body, seconds + 1)
    # throttle time, number of topics, name, error
    error = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(text))[0]
    if error not in (0, TOPIC_EXISTS):
        raise OSError("%s: error %d" % (name, error))


def leads(controller, timeout=1.0):
    """Does this controller say that it leads the others? Only who leads answers without an error."""
    topic = b"__cluster_metadata"
    # one topic with one partition, 0; the zeros that follow are tags, of which there are none
    body = bytes([2, len(topic) + 1]) + topic + bytes([2, 0, 0, 0, 0, 0, 0, 0])
    try:
        answer = ask(controller, 9093, DESCRIBE_QUORUM, 0, b"\0", body, timeout)
    except OSError:
        return False
    # tags, error, number of topics, name, number of partitions, partition, error
    at = 1
    if struct.unpack_from(">h", answer, at)[0] != 0:
        return False
    at += 2 + 1 + 1 + len(topic) + 1 + 4
    return struct.unpack_from(">h", answer, at)[0] == 0
