"""etcd's JSON gateway, as much as this example needs."""
import base64
import http.client
import json
import os
import time

NODES = {node: os.environ["ROSE_IP_" + node] for node in os.environ["ROSE_NODES"].split()}


def encode(text):
    return base64.b64encode(text.encode()).decode()


def put(key, value):
    return {"requestPut": {"key": encode(key), "value": encode(value)}}


def ask(node, path, request, timeout=5.0):
    """The answer as JSON, or None."""
    try:
        connection = http.client.HTTPConnection(NODES[node], 2379, timeout=timeout)
        try:
            connection.request("POST", "/v3/" + path, json.dumps(request))
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        return json.loads(body) if response.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None


def ask_any(path, request, seconds=20.0, first=0):
    """The same of whichever member answers, beginning with one of them; None if none did."""
    nodes = list(NODES)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for node in nodes[first:] + nodes[:first]:
            answer = ask(node, path, request)
            if answer is not None:
                return answer
        time.sleep(0.2)
    return None


def at_rest(seconds=30.0):
    """Waits until all members have applied the same entries."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = [ask(node, "maintenance/status", {}) for node in NODES]
        applied = {answer and answer.get("raftAppliedIndex") for answer in status}
        if len(applied) == 1 and None not in applied:
            return True
        time.sleep(0.3)
    return False
