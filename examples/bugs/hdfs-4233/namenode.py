"""The part of WebHDFS that the workload and the oracle need. Uses only Python's standard library. Raises OSError if the
name node does not answer, or refuses."""
import http.client
import json
import os
import time


def ask(method, path, operation, timeout=4.0):
    connection = http.client.HTTPConnection(os.environ["ROSE_IP_nn"], 9870, timeout=timeout)
    try:
        connection.request(method, "/webhdfs/v1%s?op=%s&user.name=nobody" % (path, operation))
        answer = connection.getresponse()
        data = answer.read()
    except http.client.HTTPException as error:
        raise OSError(repr(error)) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise OSError("%s %s: %d %s" % (operation, path, answer.status, data[:200].decode(errors="replace")))
    try:
        return json.loads(data)
    except ValueError as error:
        raise OSError("%s %s: %r" % (operation, path, data[:200])) from error


def make(path):
    if not ask("PUT", path, "MKDIRS")["boolean"]:
        raise OSError("MKDIRS %s: refused" % path)


def names(path):
    return [status["pathSuffix"] for status in ask("GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]]


def serves(seconds):
    """True as soon as the name node answers and has left safe mode."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            make("/orders")
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.2)
