"""The part of etcd's JSON gateway that the examples in this folder need. Uses only Python's standard library."""
import base64
import http.client
import json
import os
import time

NODES = {node: os.environ["ROSE_IP_" + node] for node in os.environ["ROSE_NODES"].split()}


def encode(text):
    return base64.b64encode(text.encode()).decode()


def put(key, value):
    """The put operation of a transaction."""
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


def wait_for(function, seconds):
    """Calls the function until it returns something other than None, and returns that; None if the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = function()
        if found is not None:
            return found
        time.sleep(0.2)
    return None


def ask_any(path, request, seconds=20.0, first=0):
    """The first answer of any member, asked in turn from the member `first` on; None if none answers in time."""
    nodes = list(NODES)

    def one_round():
        answers = (ask(node, path, request) for node in nodes[first:] + nodes[:first])
        return next((answer for answer in answers if answer is not None), None)

    return wait_for(one_round, seconds)


def at_rest(seconds=30.0):
    """Waits until all members have applied the same entries."""

    def same():
        status = [ask(node, "maintenance/status", {}) for node in NODES]
        applied = {answer and answer.get("raftAppliedIndex") for answer in status}
        return True if len(applied) == 1 and None not in applied else None

    return wait_for(same, seconds) is not None
