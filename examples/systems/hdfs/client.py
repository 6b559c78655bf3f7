"""The part of WebHDFS that the workload and the oracle need. Uses only Python's standard library. Raises OSError if a
node does not answer, or refuses."""
import http.client
import json
import os
import time
import urllib.parse

NAMENODE = os.environ["ROSE_IP_nn"]


def ask(method, url, body=None, timeout=6.0):
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=timeout)
    try:
        connection.request(method, at.path + "?" + at.query, body)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status == 307:
            return ask(method, answer.getheader("Location"), body, timeout)
        if answer.status >= 400:
            raise OSError("%s %s: %d %s" % (method, at.path, answer.status, data[:200].decode(errors="replace")))
        return data
    except http.client.HTTPException as error:
        raise OSError(repr(error)) from error
    finally:
        connection.close()


def hdfs(method, path, operation, body=None, **more):
    query = urllib.parse.urlencode({"op": operation, "user.name": "rose", **more})
    # The name node answers with the address of the data node to which the file's content is sent.
    if operation == "CREATE":
        at = urllib.parse.urlsplit("http://%s:9870/webhdfs/v1%s?%s" % (NAMENODE, path, query))
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=6)
        try:
            connection.request("PUT", at.path + "?" + at.query)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 307:
                raise OSError("PUT %s: %d" % (path, answer.status))
            return ask("PUT", answer.getheader("Location"), body)
        except http.client.HTTPException as error:
            raise OSError(repr(error)) from error
        finally:
            connection.close()
    return ask(method, "http://%s:9870/webhdfs/v1%s?%s" % (NAMENODE, path, query), body)


def live_datanodes():
    data = json.loads(ask("GET", "http://%s:9870/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState" % NAMENODE))
    return data["beans"][0]["NumLiveDataNodes"]


def wait_until(condition, seconds):
    """Waits until the condition holds and returns ""; after `seconds`, returns the last problem. The condition may
    raise OSError meanwhile."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return ""
            state = "not yet"
        except (OSError, ValueError, LookupError) as error:
            state = str(error) or repr(error)
        if time.monotonic() >= deadline:
            return state
        time.sleep(0.3)
