"""etcd's JSON gateway, as much as this example needs."""
import base64
import http.client
import json
import os
import time

NODES = {node: os.environ["ROSE_IP_" + node] for node in os.environ["ROSE_NODES"].split()}


def encode(text):
    return base64.b64encode(text.encode()).decode()


def ask(node, path, request, timeout=3.0):
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
    """What the function returns as soon as it is something; None if it never is."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = function()
        if found is not None:
            return found
        time.sleep(0.2)
    return None
